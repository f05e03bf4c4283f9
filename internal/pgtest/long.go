package pgtest

import "testing"

// Long skips t in a short run, as `make test` is one: `make deep` runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
}
