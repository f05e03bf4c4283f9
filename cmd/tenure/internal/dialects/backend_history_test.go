package dialects

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
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
			if err := first.backend.Request(soon(t), tenure.Request{Kind: tenure.RequestHandOver, Role: backendRole, Target: second.ID()}); err != nil {
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
				{NodeName: "first", Node: first.ID(), Reason: history.EndHandedOver},
			} {
				got := all[i]
				if got.Role != backendRole || got.NodeName != want.NodeName || got.Node != want.Node || got.Reason != want.Reason ||
					got.Ended.IsZero() != (i == 0) || (got.PrecedingVacancy < 0) != (i == 2) || (got.PrecedingSilence-got.PrecedingVacancy).Abs() > time.Millisecond || i > 0 && all[i-1].Began.Before(got.Ended) {
					t.Errorf("%+v; want %+v", got, want)
				}
			}
			for name, part := range map[string]struct {
				query history.Query
				want  int
			}{
				"a role":         {history.Query{Role: backendRole}, 3},
				"another role":   {history.Query{Role: "other"}, 0},
				"a node by name": {history.Query{Node: "second"}, 1},
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
