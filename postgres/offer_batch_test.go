package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/statements"
)

// Offers that are made at the same time are sent together: with one statement for each, the
// hand-over of hundreds of roles would last longer than an offer may.
func TestConcurrentOffersAreSentTogether(t *testing.T) {
	t.Parallel()
	const roles, most = 64, 8
	b, counter := newBackend(t), &statements.Counter{}
	leader, target := open(t, b, lasting), open(t, b, lasting)
	for i := range roles {
		leader.take(fmt.Sprint("role ", i))
	}
	requester := backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: b.config.Schema, Connect: counter.Connect})
	var asking sync.WaitGroup
	for i := range roles {
		asking.Go(func() {
			err := requester.Request(t.Context(), tenure.Request{
				Kind: tenure.RequestHandOver, Offer: true, Role: fmt.Sprint("role ", i), Target: target.id,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	answered := make(chan struct{})
	go func() { // ends with the requests
		asking.Wait()
		close(answered)
	}()
	for done := false; !done; {
		if _, err := target.Requests(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-answered:
			done = true
		default:
		}
	}
	sent := 0
	for text, n := range counter.Counts() {
		if strings.Contains(text, "'offer'") {
			sent += n
		}
	}
	if sent == 0 || sent > most {
		t.Errorf("%d statements made %d offers, want at most %d", sent, roles, most)
	}
}
