package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextShowsEveryCharacter(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                          "",
		"billing, größer 請求 😀":      "billing, größer 請求 😀",
		`a\b`:                       `a\b`,
		"\x1b[2J":                   `\u001b[2J`,
		"a\nb\r\tc\x00\x7f":         `a\u000ab\u000d\u0009c\u0000\u007f`,
		"\u009b31m":                 `\u009b31m`,
		"\x9b31m":                   `\x9b31m`,
		"a\u202eb\u2066c\u200f":     `a\u202eb\u2066c\u200f`,
		"a\u200bb\u200d\ufeff":      `a\u200bb\u200d\ufeff`,
		"a\u2028b\u2029":            `a\u2028b\u2029`,
		"a\u00a0b\u3000":            `a\u00a0b\u3000`,
		"a\u115f\u3164\u2800\u034f": `a\u115f\u3164\u2800\u034f`,
		"a\ufe0f\U000e0100":         `a\ufe0f\udb40\udd00`,
		"tag \U000e0041":            `tag \udb40\udc41`,
		"private \ue000\U0010ffff":  `private \ue000\udbff\udfff`,
		"cut \xe2\x80":              `cut \xe2\x80`,
		"\ufffd":                    "\ufffd",
	} {
		got := Text(given)
		if got != want {
			t.Errorf("Text(%q) is %q, want %q", given, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text of %q is %q", got, again)
		}
		if !IsText(got) || IsText(given) != (given == got) {
			t.Errorf("IsText is wrong for %q or %q", given, got)
		}
	}
	if got, want := Lines("a\n\tb\u202e\r\n"), "a\n\tb"+`\u202e\u000d`+"\n"; got != want {
		t.Errorf("Lines is %q, want %q", got, want)
	}
}

// TestJSONKeepsValues: what a reader decodes is what was encoded.
func TestJSONKeepsValues(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		text := "<" + string(r) + ">"
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		encoded = JSON(encoded)
		var decoded string
		if err := json.Unmarshal(encoded, &decoded); err != nil || decoded != text {
			t.Fatalf("%U: %s is decoded as %q: %v", r, encoded, decoded, err)
		}
		if !IsText(string(encoded)) {
			t.Fatalf("%U: %q cannot be printed", r, encoded)
		}
	}
}

func TestWriterPassesLinesOn(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	text := "time=now msg=\"a\u202eb\"\n"
	n, err := NewWriter(&out).Write([]byte(text))
	if err != nil || n != len(text) || out.String() != "time=now msg=\"a"+`\u202e`+"b\"\n" {
		t.Errorf("%d, %v: %q", n, err, out.String())
	}
}

// TestLabelsStayDifferent: no two texts share a label, and none is long.
func TestLabelsStayDifferent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 400)
	texts := []string{
		"", "billing", `a\b`, `a\\b`, "a\x1bb", `a\u001bb`, `a\\u001bb`, "a\\\x1bb", "a\x9bb", `a\x9bb`, "a\nb", `a\nb`, "a\u009bb", "\u202e", `\u202e`,
		long, long + "x", long + "\x1b", Label(long), Label(long + "x"), Label(Label(long)), "…#", `\u2026#`, strings.Repeat("\x1b", 300), strings.Repeat(`\`, 600),
	}
	seen := map[string]string{}
	for _, text := range texts {
		label := Label(text)
		if before, twice := seen[label]; twice {
			t.Errorf("%q and %q have the label %q", before, text, label)
		}
		seen[label] = text
		if !IsText(label) || len(label) > longestLabel+len(cutMark)+16 {
			t.Errorf("Label(%q) is %q", text, label)
		}
	}
	if got := Label("billing-é"); got != "billing-é" {
		t.Errorf("an ordinary name becomes %q", got)
	}
}
