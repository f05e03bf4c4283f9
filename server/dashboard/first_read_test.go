package dashboard

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/history"
)

// After a time without viewers, what is shown has the age of the last read, although the outage is
// known since the first read that failed.
func TestAgeCountsFromLastReadAfterRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSnapshot()
		p.update(reading{terms: []history.Term{snapshotTerm(1, 1, time.Now())}, whole: true})
		time.Sleep(time.Hour)
		p.resume()
		p.failed(errors.New("no route to host"))
		time.Sleep(3 * time.Second)
		n := p.now()
		if age, outage := time.Since(*n.UnreadSince), time.Since(*n.Health.Since); age != time.Hour+3*time.Second || outage != 3*time.Second {
			t.Errorf("the state is %v old, and the database cannot be read for %v; want 1h0m3s and 3s", age, outage)
		}
		if want := "and was read last at " + moment(*n.UnreadSince); !strings.Contains(n.Health.Sentence, want) {
			t.Errorf("the banner is %q, which may have been false for an hour; want %q in it", n.Health.Sentence, want)
		}
	})
}

// A request for a role waits for the first read of the database. Without one, the role
// is not reported as unknown.
func TestRoleWaitsForFirstRead(t *testing.T) {
	for name, after := range map[string]time.Duration{"in time": time.Second, "too late": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSnapshot()
				time.AfterFunc(after, func() { p.update(reading{}) })
				began := time.Now()
				read := p.awaitFirstRead(t.Context())
				if waited := time.Since(began); read != (after < firstReadWait) || waited != min(after, firstReadWait) {
					t.Errorf("returned %v after %v", read, waited)
				}
			})
		})
	}
}
