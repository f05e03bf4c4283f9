package cron

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOutputKeepsEnd(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, test := range map[string]struct {
		written []string
		want    string
	}{
		"nothing":                 {nil, ""},
		"several words":           {[]string{"one ", "", "two\n"}, "one two\n"},
		"as much as fits":         {[]string{x(maxOutput)}, x(maxOutput)},
		"one byte more":           {[]string{x(maxOutput), "\n"}, "…" + x(maxOutput-4) + "\n"},
		"one long write":          {[]string{"lost", x(3*maxOutput) + "end"}, "…" + x(maxOutput-6) + "end"},
		"invalid UTF-8 and NUL":   {[]string{"a\xff\x00b"}, "a\uFFFD\uFFFDb"},
		"a character in two":      {[]string{"caf\xc3", "\xa9"}, "café"},
		"no part of a character":  {[]string{strings.Repeat("é", maxOutput)}, "…" + strings.Repeat("é", (maxOutput-3)/2)},
		"replacements are longer": {[]string{strings.Repeat("\x00", maxOutput)}, "…" + strings.Repeat("\uFFFD", (maxOutput-3)/3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o output
			for _, words := range test.written {
				if n, err := o.Write([]byte(words)); n != len(words) || err != nil {
					t.Errorf("wrote %d of %d bytes, %v", n, len(words), err)
				}
			}
			if got := o.text(); got != test.want {
				t.Errorf("kept %d bytes, %.20q to %.20q; want %d", len(got), got, got[max(0, len(got)-20):], len(test.want))
			}
		})
	}
}

func TestOutputIsStorable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var o output
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			words := rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "words")
			_, _ = o.Write([]byte(strings.Repeat(string(words), rapid.IntRange(1, maxOutput/8).Draw(t, "times"))))
		}
		text := o.text()
		if len(text) > maxOutput || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Fatalf("kept %d bytes", len(text))
		}
	})
}

func TestOutputKeepsLinesOfManyWriters(t *testing.T) {
	t.Parallel()
	var o output
	var writers sync.WaitGroup
	for i := range 10 {
		writers.Go(func() { fmt.Fprintf(&o, "%d\n", i) })
	}
	writers.Wait()
	if text := o.text(); len(text) != 20 || strings.Count(text, "\n") != 10 {
		t.Errorf("kept %q", text)
	}
}
