//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

const serverLog = `2026-11-29 18:00:00.000 GMT [1] LOG:  database system is ready to accept connections
2026-11-29 18:00:01.000 GMT [11] tenure n1 session: FATAL:  terminating connection due to idle-session timeout
2026-11-29 18:00:01.001 GMT [11] tenure n1 session: LOG:  disconnection: session time: 0:00:01.000 user=postgres
2026-11-29 18:00:02.000 GMT [12] tenure n2 session: LOG:  disconnection: session time: 0:00:02.000 user=postgres
2026-11-29 18:00:03.000 GMT [13] tenure n3 session: FATAL:  terminating connection due to administrator command
2026-11-29 18:00:04.000 GMT [1] LOG:  received fast shutdown request
2026-11-29 18:00:04.001 GMT [14] tenure n4 session: FATAL:  terminating connection due to administrator command
2026-11-29 18:00:05.000 GMT [2] LOG:  database system was shut down at 2026-11-29 18:00:04 GMT
2026-11-29 18:00:05.001 GMT [1] LOG:  database system is ready to accept connections
2026-11-29 18:00:05.500 GMT [15] tenure n5 session: FATAL:  terminating connection due to unexpected postmaster exit
2026-11-29 18:00:052026-11-29 18:00:06.000 GMT [3] LOG:  database system was interrupted; last known up at 2026-11-29 18:00:05 GMT
2026-11-29 18:00:06.001 GMT [1] LOG:  database system is ready to accept connections
`

func TestEndingsAreReadFromTheLog(t *testing.T) {
	var kinds []steps.Kind
	for _, e := range readEndings(strings.NewReader(serverLog)) {
		kinds = append(kinds, e.kind)
	}
	want := []steps.Kind{steps.Starts, steps.IdleEnds, steps.Ends, steps.Reaps, steps.Kills, steps.Stops, steps.Starts, steps.Kills, steps.Crashes, steps.Starts}
	if !slices.Equal(kinds, want) {
		t.Errorf("the log has %v; want %v", kinds, want)
	}
}

// The clock of a server is compared at each look. A time that it showed twice, or between
// two looks between which it was set, is not certain.
func TestTimesOfTheServerAreConverted(t *testing.T) {
	at := func(from, to, clock int64) look { return look{from: from, to: to, clock: clock} }
	all := epochs([]look{at(100, 110, 1105), at(200, 202, 1201), at(300, 310, 1255), at(400, 402, 1351)})
	if len(all) != 2 {
		t.Fatalf("the clock was set %d times; want once: %v", len(all)-1, all)
	}
	for _, c := range []struct {
		clock, from, to int64
		certain         bool
	}{{1150, 149, 151, true}, {1340, 389, 391, true}, {1230, 229, 231, false}, {1245, 244, 246, false}, {9000, 0, 0, false}} {
		from, to, ok := when(all, c.clock, 10)
		if ok != c.certain || ok && (from != c.from || to != c.to) {
			t.Errorf("the clock showed %d between %d and %d, certainly: %v; want %+v", c.clock, from, to, ok, c)
		}
	}
}

// The run records the death of a process when it has waited for its end.
func TestEndsOfDeadNodesAreLeftOut(t *testing.T) {
	of := func(kind steps.Kind, at time.Duration, session int64, node string) steps.Step {
		return steps.Step{Kind: kind, At: at, Session: session, Node: node}
	}
	left := withoutDead([]steps.Step{
		of(steps.SendsHeartbeat, 1, 1, "a"), of(steps.SendsHeartbeat, 1, 2, "b"),
		of(steps.Ends, 2, 1, ""), of(steps.Ends, 2, 2, ""), of(steps.Dies, 3, 0, "a"),
	})
	if len(left) != 4 || left[2].Session != 2 {
		t.Errorf("left are %v; want the end of session 2 only", left)
	}
}
