package printable

import "testing"

func TestClipKeepsWholeCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"":       "",
		"short":  "short",
		"ends ö": "ends ö",
		"cut öö": "cut ö…",
		"a\x00b": "a\uFFFDb",
		"a\xffb": "a\uFFFDb",
	} {
		if got := Clip(text, 7); got != want {
			t.Errorf("%q becomes %q; want %q", text, got, want)
		}
	}
}
