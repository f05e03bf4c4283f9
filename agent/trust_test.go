//go:build linux

package agent_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/agent/internal/wire"
	"github.com/exactly-one/tenure/agent/server"
	"github.com/exactly-one/tenure/internal/testkit"
)

// The server counts the lease of the agent from the arrival of a heartbeat, so trust
// counts from before that.
func TestTrustCountsFromBeforeTheHeartbeatOfTheAgent(t *testing.T) {
	t.Parallel()
	db := newHooked()
	var arrived atomic.Int64
	db.heartbeat = func(tenure.Load) error {
		arrived.Store(int64(wire.Now()))
		time.Sleep(200 * time.Millisecond) // a slow database
		return nil
	}
	node := join(t, startAgent(t, server.Config{Backend: db, Timing: rareBeats}), time.Minute)
	answer := node.beat()
	if trusted := answer.Until.Sub(wire.Moment(arrived.Load())); trusted > rareBeats.Lease-rareBeats.Margin || trusted <= 0 {
		t.Errorf("invariant 1: nodes trust their terms until %v after a heartbeat arrived, want at most %v", trusted, rareBeats.Lease-rareBeats.Margin)
	}
}

// The agent repeats a heartbeat that was answered with an error, long before trust ends.
func TestAgentSurvivesHeartbeatThatFails(t *testing.T) {
	t.Parallel()
	db := newHooked()
	var fails atomic.Bool
	failed, beats := make(chan struct{}), make(chan struct{}, 1000)
	db.heartbeat = func(tenure.Load) error {
		if fails.CompareAndSwap(true, false) {
			close(failed)
			return errBusy
		}
		beats <- struct{}{}
		return nil
	}
	timing := tenure.Timing{Lease: time.Minute, RefreshInterval: 2 * time.Second, Margin: time.Second}
	startAgent(t, server.Config{Backend: db, Timing: timing})
	fails.Store(true)
	<-failed
	for len(beats) > 0 {
		<-beats
	}
	testkit.Receive(t, beats, soon, "invariant 7: a heartbeat that failed is not repeated")
}

// What one node reports must not end the heartbeats of all nodes of the host.
func TestLoadsOfNodesFitTheDatabase(t *testing.T) {
	t.Parallel()
	db := newHooked()
	loads := make(chan tenure.Load, 1000)
	db.heartbeat = func(load tenure.Load) error {
		loads <- load
		return nil
	}
	path := startAgent(t, server.Config{Backend: db, Timing: tenure.Timing{Lease: time.Minute, RefreshInterval: 100 * time.Millisecond, Margin: time.Second}})
	for _, n := range []int{math.MaxInt32, math.MaxInt32, math.MinInt64} {
		node := join(t, path, time.Minute)
		if err := node.call(wire.Call{Op: wire.OpHeartbeat, Load: &tenure.Load{Jobs: n}}).Err.Decode(); err != nil {
			t.Fatal(err)
		}
	}
	for limit := time.After(soon); ; {
		select {
		case load := <-loads:
			if load.Jobs < 0 || load.Jobs > math.MaxInt32 {
				t.Fatalf("the agent reports %d jobs, more than the database can store", load.Jobs)
			}
			if load.Jobs == math.MaxInt32 {
				return
			}
		case <-limit:
			t.Fatal("the agent does not report the load of its nodes")
		}
	}
}
