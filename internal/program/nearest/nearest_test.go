package nearest

import "testing"

func TestOfFindsTheClosestWord(t *testing.T) {
	t.Parallel()
	candidates := []string{"postgres", "postgresql", "mysql", "sqlite", "tls"}
	for word, want := range map[string]string{
		"postgress": "postgres", "postgre": "postgres", "postgressql": "postgresql", "mysqll": "mysql",
		"sqlite3": "sqlite", "sglite": "sqlite", "tsl": "tls", "tl": "tls", "redis": "", "": "", "größe": "",
	} {
		if got := Of(word, candidates); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestDistanceCountsEdits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"ä", "a", 1}, {"same", "same", 0},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
