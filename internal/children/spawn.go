package children

import (
	"encoding/json"
	"testing"
	"time"
)

// Spawn starts a child that finds its order, as JSON, in a variable of its environment.
// The child is killed with the test.
func Spawn(t testing.TB, variable string, order any, options Options) *Child {
	t.Helper()
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	options.Env = append(options.Env, variable+"="+string(text))
	c, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// Await waits for a report of a kind since a moment, as [Child.Await] does. The test
// fails if there is none.
func Await(t testing.TB, c *Child, kind string, since time.Time) Report {
	t.Helper()
	r, err := c.Await(t.Context(), kind, since)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
