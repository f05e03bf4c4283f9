package acceptance_test

import (
	"context"
	"slices"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// restart ends the server without a checkpoint, and starts it again.
func (o *observed) restart() {
	o.t.Helper()
	o.outage(true, func() (up time.Time) {
		o.server.Stop(o.t, "immediate")
		up = time.Now()
		o.server.Start(o.t)
		o.conn = pgtest.Conn(o.t, o.dsn)
		return up
	})
}

// cutAll cuts all nodes off from the server, until the server has ended their sessions.
func (o *observed) cutAll() {
	o.t.Helper()
	o.outage(false, func() (up time.Time) {
		o.do(o.apart.Isolate, 0, 1)
		eventually(o.t, o.conn, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity a JOIN "+o.quoted("nodes")+" n ON n.pid = a.pid AND n.backend_start = a.backend_start)")
		up = time.Now()
		o.do(o.apart.Rejoin, 0, 1)
		return up
	})
}

// outage makes an outage, and compares what was recorded with what the observer saw.
// inject returns from when on a node can open a session again.
func (o *observed) outage(serverChanged bool, inject func() (up time.Time)) {
	o.t.Helper()
	since := time.Now()
	held := o.held(since)
	up := inject()
	for _, p := range []*process{o.leader, o.standby} {
		o.out.await("session "+p.Name, func(c change) bool { return c.To.After(up) })
	}
	o.settle()
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	outages, err := o.backend.Outages(ctx, history.Query{Since: since})
	cancel()
	if err != nil || len(outages) != 1 {
		o.t.Fatalf("%+v, %v; want one outage since %v", outages, err, since)
	}
	recorded := outages[0]
	beat, foundBeat := o.out.last("beat ", func(c change) bool { return c.To.Before(up) })
	session, foundSession := o.out.first("session ", up)
	if !foundBeat || !foundSession {
		o.t.Fatalf("the observer has not seen a heartbeat before the outage (%t) or a session after it (%t)", foundBeat, foundSession)
	}
	if blind, found := o.out.blind(up); found && serverChanged && recorded.Began.After(blind.From) {
		beat.Interval = blind // the last heartbeat came after the last look
	}
	session.From = children.Later(session.From, up)
	seen := beat.until(session)
	waited := o.out.waited(children.Interval{From: since, To: session.To}, o.leader, o.standby)
	o.found.compare(o.t, "length", seen, recorded.Ended.Sub(recorded.Began), waited)
	if !slices.Equal(recorded.Roles, held) {
		o.t.Errorf("%q stood still, want the roles whose locks were held: %q", recorded.Roles, held)
	}
	if recorded.ServerChanged != serverChanged {
		o.t.Errorf("the server has changed: %t, want %t", recorded.ServerChanged, serverChanged)
	}
	o.t.Logf("an outage of %v, seen %v, in which %d roles stood still", recorded.Ended.Sub(recorded.Began), seen, len(recorded.Roles))
}

// held lists the roles whose locks the observer saw held last.
func (o *observed) held(at time.Time) []string {
	var all []string
	for i := range o.roles + 1 {
		if c, found := o.out.last("lock "+roleName(i), func(c change) bool { return c.To.Before(at) }); found && c.value != "0" {
			all = append(all, roleName(i))
		}
	}
	slices.Sort(all)
	return all
}
