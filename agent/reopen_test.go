//go:build linux

package agent_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/tenuretest"
)

// opening is what an agent said when it opened a session, and the session's incarnation,
// which is 0 if the database refused it.
type opening struct{ previous, incarnation int64 }

// recordingDatabase records how sessions are opened, and can refuse them.
type recordingDatabase struct {
	*tenuretest.Database
	opened   chan opening
	deadBorn int // so many sessions are lost with their first heartbeat

	mu   sync.Mutex
	down bool // guarded by mu
}

func (d *recordingDatabase) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *recordingDatabase) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	d.mu.Lock()
	down := d.down
	d.mu.Unlock()
	if down {
		d.opened <- opening{previous: options.PreviousIncarnation}
		return nil, fmt.Errorf("%w: the server restarts", tenure.ErrConnection)
	}
	session, err := d.Database.Open(ctx, options)
	if err == nil {
		d.opened <- opening{options.PreviousIncarnation, session.Incarnation()}
		if d.deadBorn--; d.deadBorn >= 0 {
			return deadBorn{session}, nil
		}
	}
	return session, err
}

type deadBorn struct{ tenure.Session }

func (deadBorn) Heartbeat(tenure.Load) (bool, error) {
	return false, fmt.Errorf("%w: the server restarts", tenure.ErrSessionLost)
}

// A server restarts, and the work of a node ends while it is down. The agent's next
// session says that no work of the last one is left: other hosts wait for it otherwise,
// as long as its lease.
func TestAgentSaysThatWorkEndedWhileServerWasDown(t *testing.T) {
	t.Parallel()
	db := &recordingDatabase{Database: tenuretest.NewDatabase(), opened: make(chan opening, 100)}
	node := dialRaw(t, startAgent(t, server.Config{Backend: db}))
	node.open(time.Minute)
	node.acquire("r")
	first := <-db.opened
	db.setDown(true)
	db.Revoke(tenure.NamedRole("r"))
	if again := <-db.opened; again.previous != 0 {
		t.Errorf("while the work of a node runs, the agent says that it has returned: %+v", again)
	}
	if err := node.conn.Close(); err != nil { // its work has returned
		t.Fatal(err)
	}
	const most = 5 // the agent may notice it only after the next attempt
	for range most {
		if again := <-db.opened; again.previous == first.incarnation {
			db.setDown(false)
			return
		}
	}
	t.Errorf("after %d attempts the agent has not said that the work of its session %d has returned", most, first.incarnation)
	db.setDown(false)
}

// A session that was lost before a node could use it has no work either.
func TestAgentSaysThatUnusedSessionHadNoWork(t *testing.T) {
	t.Parallel()
	db := &recordingDatabase{Database: tenuretest.NewDatabase(), opened: make(chan opening, 100), deadBorn: 2}
	startAgent(t, server.Config{Backend: db})
	for last := (opening{}); ; {
		next := <-db.opened
		if next.previous != last.incarnation {
			t.Errorf("a session follows the unused session %d with the previous incarnation %d", last.incarnation, next.previous)
		}
		if last = next; len(db.opened) == 0 {
			return
		}
	}
}
