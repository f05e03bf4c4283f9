// Package printable makes foreign text safe to print: names from a database, errors of a
// server, input of a peer. Its characters can move the cursor of a terminal, forge a line,
// change the text direction or hide a part. This package replaces each of them with its
// code point, as JSON does: \u001b.
package printable

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text as one line of visible characters. Invalid UTF-8 is shown byte by
// byte: \x9b. Applying Text twice gives the same result.
func Text(text string) string { return escape(text, unsafeInLine) }

// Lines is Text for a text of several lines. They may be indented by tabs.
func Lines(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && r != '\t' && unsafeInLine(r) })
}

// JSON escapes the unsafe characters in encoded JSON. The values stay the same.
func JSON(encoded []byte) []byte {
	if IsText(string(encoded)) {
		return encoded
	}
	return []byte(Lines(string(encoded)))
}

// IsText reports whether Text changes nothing.
func IsText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unsafeInLine)
}

// unsafeInLine reports characters that are invisible or affect their surroundings. The
// space is the only white space counted as visible.
func unsafeInLine(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case r == '\u2800': // the empty Braille pattern
		return true
	default:
		return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
	}
}

func escape(text string, unsafe func(rune) bool) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unsafe) {
		return text
	}
	var out strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[0])
		case unsafe(r):
			out.WriteString(escaped(r))
		default:
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}

// escaped is a character as JSON writes it by number.
func escaped(r rune) string {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// NewWriter returns a writer. It applies [Lines] to each write. A write must hold whole
// characters, as the writes of a logger do.
func NewWriter(to io.Writer) io.Writer { return writer{to} }

type writer struct{ to io.Writer }

func (w writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, Lines(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
