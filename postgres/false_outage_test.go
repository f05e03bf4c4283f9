package postgres

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The first session after a step of the clock cannot know that there was no outage. When
// the clock is right again, none is shown.
func TestClockThatWasAheadIsNoOutage(t *testing.T) {
	t.Parallel()
	server, clock := pgtest.StartWithClock(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{Schema: server.Schema(t)})
	outages := func(when string, want int) {
		t.Helper()
		if found, err := b.Outages(t.Context(), history.Query{}); err != nil || len(found) != want {
			t.Errorf("%s: %+v, %v; want %d outages", when, found, err, want)
		}
	}
	reopen := func(p *peer) *peer {
		t.Helper()
		p.Abort()
		eventually(t, b, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", p.space, p.incarnation)
		return open(t, b, lasting, func(o *peerOptions) { o.id = p.id })
	}
	p := open(t, b, lasting)
	p.take("scheduler")
	clock.Set(t, 2*time.Hour)
	p = reopen(p)
	outages("while the clock is ahead", 1)
	clock.Set(t, 0)
	outages("when the clock is right", 0)
	clock.Set(t, 10*time.Minute) // of true time
	p = reopen(p)
	p.beat()
	clock.Set(t, 3*time.Hour)
	outages("after the time that was false", 0)
	reopen(p)
	outages("after a true outage", 1)
}
