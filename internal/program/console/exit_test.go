package console

import "testing"

func TestFlattenKeepsEachLineOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one":                       "one",
		"cause:\n\tone\n\tone":      "cause: one",
		"one\n two \n\none\nthree:": "one; two; three:",
	} {
		if got := Flatten(text); got != want {
			t.Errorf("Flatten(%q) is %q, want %q", text, got, want)
		}
	}
}
