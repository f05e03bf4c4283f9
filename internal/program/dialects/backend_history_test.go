package dialects

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/lease"
)

// The history has every term once, with its end, on every database.
func TestBackendHistoryContainsEachTermOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, kind)
			first := c.join("first")
			election := first.campaign(backendRole)
			leads(t, election)
			second := c.join("second")
			other := second.campaign(backendRole)
			if err := first.backend.Request(soon(t), tenure.Request{Kind: tenure.RequestHandOver, Role: backendRole, Target: second.ID(), By: "Zoë"}); err != nil {
				t.Fatal(err)
			}
			leads(t, other)
			if err := second.Close(soon(t)); err != nil {
				t.Fatal(err)
			}
			leads(t, election)
			read := func(query history.Query) []history.Term {
				t.Helper()
				records, err := first.backend.History(soon(t), query)
				if err != nil {
					t.Fatal(err)
				}
				return records
			}
			all := read(history.Query{})
			if len(all) != 3 {
				t.Fatalf("%+v; want three terms", all)
			}
			for i, want := range []history.Term{
				{NodeName: "first", Node: first.ID()},
				{NodeName: "second", Node: second.ID(), Reason: history.EndShutdown},
				{NodeName: "first", Node: first.ID(), Reason: history.EndHandedOver, By: "Zoë"},
			} {
				got := all[i]
				if got.Role != backendRole || got.NodeName != want.NodeName || got.Node != want.Node || got.Reason != want.Reason ||
					got.Ended.IsZero() != (i == 0) || (got.PrecedingVacancy < 0) != (i == 2) || (got.PrecedingSilence-got.PrecedingVacancy).Abs() > time.Millisecond || i > 0 && all[i-1].Began.Before(got.Ended) {
					t.Errorf("%+v; want %+v", got, want)
				}
				if got.By != want.By {
					t.Errorf("term %d from the end: the requester of the hand-over is %q; want %q", i, got.By, want.By)
				}
			}
			for name, part := range map[string]struct {
				query history.Query
				want  int
			}{
				"a role":         {history.Query{Role: backendRole}, 3},
				"another role":   {history.Query{Role: "other"}, 0},
				"a node by name": {history.Query{Node: "second"}, 1},
				"another name":   {history.Query{Node: "SECOND"}, 0},
				"a node by id":   {history.Query{Node: first.ID().String()}, 2},
				"an id's begin":  {history.Query{Node: strings.ToUpper(second.ID().String()[:13])}, 1},
				"too short one":  {history.Query{Node: second.ID().String()[:3]}, 0},
				"a wildcard":     {history.Query{Node: "%%%%"}, 0},
				"the last":       {history.Query{Latest: true}, 1},
				"since":          {history.Query{Since: all[0].Began.Add(time.Microsecond)}, 1},
				"until":          {history.Query{Until: all[1].Began}, 2},
				"the newest":     {history.Query{Limit: 1}, 1},
			} {
				if got := read(part.query); len(got) != part.want {
					t.Errorf("%s: %+v; want %d terms", name, got, part.want)
				}
			}

			// A node that falls silent.
			term := all[0].Term
			execute(t, first.db, "UPDATE "+lease.DefaultPrefix+"sessions SET expires_at = last_heartbeat")
			for _, r := range read(history.Query{}) {
				if r.Term == term && (r.Reason != history.EndLeaseExpired || r.Ended.IsZero()) {
					t.Errorf("silent: %+v", r)
				}
			}
		})
	}
}

// A term that no node follows stays ended when its session was long ago, and the next term
// shows how long the role was vacant.
func TestBackendHistoryKeepsEndOfUnfollowedTerm(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		db := k.open(t)
		backend := newBackend(t, db, k.dialect, lease.Config{})
		silent := acquires(t, backend, "silent")
		silent.Abort()
		const ago = 25 * time.Hour
		execute(t, db, fmt.Sprintf("UPDATE %[1]ssessions SET started_at = started_at - %[2]d, last_heartbeat = last_heartbeat - %[2]d, "+
			"expires_at = last_heartbeat - %[2]d, ended_at = last_heartbeat - %[2]d", lease.DefaultPrefix, ago.Microseconds()),
			fmt.Sprintf("UPDATE %sseats SET began_at = began_at - %d", lease.DefaultPrefix, ago.Microseconds()))
		opens(t, backend, "other")

		records, err := backend.History(soon(t), history.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if len(records) != 1 || records[0].Ended.IsZero() || time.Since(records[0].Ended) < ago-time.Hour {
			t.Errorf("%+v; want one term that ended %v ago", records, ago)
		}
		acquires(t, backend, "next")
		if records, err = backend.History(soon(t), history.Query{Latest: true}); err != nil {
			t.Fatal(err)
		}
		if len(records) != 1 || records[0].PrecedingVacancy < ago-time.Hour {
			t.Errorf("%+v; want one term after a vacancy of %v", records, ago)
		}
	})
}

// opens opens the session of a new node.
func opens(t *testing.T, backend *lease.Backend, name string) tenure.Session {
	t.Helper()
	return opensWith(t, backend, name, tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Second})
}

func opensWith(t *testing.T, backend *lease.Backend, name string, timing tenure.Timing) tenure.Session {
	t.Helper()
	session, err := backend.Open(soon(t), tenure.SessionOptions{
		Node:   tenure.NodeInfo{ID: uuid.New(), Name: name, Host: "localhost"},
		Timing: timing,
		Clock:  clocks.System(), Logger: slog.New(slog.DiscardHandler), MaySend: func() bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Abort)
	return session
}

// acquires opens a session that begins a term.
func acquires(t *testing.T, backend *lease.Backend, name string) tenure.Session {
	t.Helper()
	session := opens(t, backend, name)
	results, err := session.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole(backendRole)}})
	if err != nil || len(results) != 1 || results[0].Outcome != tenure.OutcomeGranted {
		t.Fatalf("%s: %+v, %v", name, results, err)
	}
	return session
}
