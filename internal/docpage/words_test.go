package docpage

import "testing"

func TestWordsCountHandwrittenProse(t *testing.T) {
	for page, want := range map[string]int{
		"one two\nthree\n":                                   3,
		"one <!-- tested by TestX --> two\n":                 2,
		"one\n\n```sh\nmake test\n```\n\ntwo `three`\n":      3,
		"one\n<!-- written by make a -->\n\nx\n<!-- end -->": 1,
		"<!-- written by make a -->\n\nx\n<!-- end -->\none\n<!-- written by make b -->\ny\n<!-- end -->\ntwo\n": 2,
	} {
		if got := Words(page); got != want {
			t.Errorf("%q has %d words, want %d", page, got, want)
		}
	}
}
