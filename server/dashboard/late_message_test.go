package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// The page reconnects, and shows gray states, if nothing arrives for 12 s. The server
// sends something often enough that one message may be lost or late. While the database
// can be read, these are states of the cluster beside the signs of life.
func TestPageToleratesOneLateMessage(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	script, err := assets.ReadFile("assets/live.js")
	if err != nil {
		t.Fatal(err)
	}
	if want := "silenceLimit = 12_000;"; !strings.Contains(string(script), want) {
		t.Fatalf("live.js does not contain %q", want)
	}
	const limit = 12 * time.Second
	w := newWorld(t, Config{})
	next, end := w.follow("")
	for began := time.Now(); time.Since(began) < limit; {
		late := time.AfterFunc(limit/2, func() {
			w.Errorf("nothing arrived for %v; the page waits %v, and one message may be late", limit/2, limit)
			end()
		})
		next()
		late.Stop()
	}
}
