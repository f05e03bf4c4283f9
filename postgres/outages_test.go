package postgres

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// The session that ends a time in which no node reached the database records when that
// began, with the roles that stood still.
func TestOutageIsRecordedByFirstSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restarted bool // the server, in the meantime
		another   bool // node opens the first session
		want      bool
	}{
		"a node comes back":                        {want: true},
		"a node comes back to a restarted server":  {restarted: true, want: true},
		"a new node joins on a restarted server":   {restarted: true, another: true, want: true},
		"a new node joins where the last one died": {another: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.another {
				pgtest.Long(t)
			}
			t.Parallel()
			b := newBackend(t)
			p := open(t, b)
			p.take("scheduler")
			p.take("reports")
			exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '2 hours'")
			exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '1 hour'")
			seen := row[time.Time](t, b, "SELECT last_heartbeat FROM {nodes}")
			if c.restarted {
				exec(t, b, "UPDATE {nodes} SET server_epoch = 'earlier'")
				exec(t, b, "UPDATE {terms} SET server_epoch = 'earlier'")
			}
			p.Abort()
			eventually(t, b, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", p.space, p.incarnation)
			open(t, b, func(o *peerOptions) {
				if !c.another {
					o.id = p.id
				}
			})
			open(t, b) // not the first one
			outages, err := b.Outages(context.Background(), history.Query{})
			if err != nil || len(outages) != map[bool]int{true: 1}[c.want] {
				t.Fatalf("%+v, %v; want an outage: %t", outages, err, c.want)
			}
			if !c.want {
				return
			}
			o := outages[0]
			if lasted := o.Ended.Sub(o.Began); !o.Began.Equal(seen) || lasted < time.Hour || lasted > time.Hour+patience {
				t.Errorf("from %v to %v; want an hour from %v", o.Began, o.Ended, seen)
			}
			if want := []string{"reports", "scheduler"}; !slices.Equal(o.Roles, want) {
				t.Errorf("%q stood still, want %q", o.Roles, want)
			}
			if changed := c.restarted && !c.another; o.ServerChanged != changed { // a new node closes no terms when it joins
				t.Errorf("the server has changed: %t, want %t", o.ServerChanged, changed)
			}
			if later, err := b.Outages(context.Background(), history.Query{Since: o.Ended.Add(time.Microsecond)}); err != nil || len(later) != 0 {
				t.Errorf("%+v, %v; want no outage after the end of the only one", later, err)
			}
		})
	}
}

// A role whose leader died before, and for which no node campaigns, did not stand still
// because of the outage.
func TestOutageOmitsRoleThatWasVacantBefore(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	dead, p := open(t, b), open(t, b)
	dead.take("reports")
	p.take("scheduler")
	dead.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", dead.id)
	exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '3 hours'")
	exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '2 hours', died_at = died_at - interval '2 hours' WHERE id = $1", dead.id)
	exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '1 hour' WHERE id = $1", p.id)
	p.Abort()
	eventually(t, b, "SELECT pg_try_advisory_xact_lock_shared($1, $2)", p.space, p.incarnation)
	open(t, b, func(o *peerOptions) { o.id = p.id })
	outages, err := b.Outages(t.Context(), history.Query{})
	if err != nil || len(outages) != 1 || !slices.Equal(outages[0].Roles, []string{"scheduler"}) {
		t.Errorf("%+v, %v; want one outage, in which only the role that was led stood still", outages, err)
	}
}
