package printable

import (
	"strings"
	"unicode/utf8"
)

// Stored returns text as PostgreSQL can store it: it replaces invalid UTF-8 and NUL.
func Stored(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// Clip is Stored for a column of at most most bytes of a text. A longer text ends in an
// ellipsis.
func Clip(text string, most int) string {
	text = Stored(text)
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
