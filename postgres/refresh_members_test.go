package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/signal"
)

// zones returns the label zone of each node, as the session refreshes them. It is "dead"
// for a dead node.
func (p *peer) zones() map[uuid.UUID]string {
	p.t.Helper()
	members, err := p.RefreshMembers()
	if err != nil {
		p.t.Fatal(err)
	}
	zones, last := map[uuid.UUID]string{}, int64(0)
	for _, m := range members {
		if m.Incarnation <= last {
			p.t.Errorf("incarnation %d after %d", m.Incarnation, last)
		}
		last = m.Incarnation
		if zones[m.ID] = m.Labels["zone"]; m.Status == tenure.StatusDead {
			zones[m.ID] = "dead"
		}
	}
	return zones
}

// awaitZones waits for notifications until the condition holds.
func (p *peer) awaitZones(what string, holds func(map[uuid.UUID]string) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(withinLease); !holds(p.zones()); p.wait(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not within %v", what, withinLease)
		}
	}
}

func (p *peer) describe(zone string) {
	p.t.Helper()
	err := p.WriteDescription(tenure.Description{Status: tenure.StatusActive, Labels: map[string]string{"zone": zone}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// relabel changes the row of a node without a notification.
func relabel(t *testing.T, b *Backend, id uuid.UUID, zone string) {
	t.Helper()
	exec(t, b, `UPDATE {nodes} SET labels = jsonb_build_object('zone', $2::text) WHERE id = $1`, id, zone)
}

// A refresh reads the nodes that were reported as changed, and no others.
func TestRefreshReadsReportedNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	p, other, quiet := open(t, b), open(t, b), open(t, b)
	has := func(id uuid.UUID, zone string) func(map[uuid.UUID]string) bool {
		return func(zones map[uuid.UUID]string) bool { found, ok := zones[id]; return ok && found == zone }
	}
	p.awaitZones("the nodes joined", func(zones map[uuid.UUID]string) bool { return len(zones) == 3 })
	p.drain()
	p.zones()
	relabel(t, b, quiet.id, "not reported")
	other.describe("x")
	p.awaitZones("the other node is in x", has(other.id, "x"))
	p.describe("y")
	if !has(p.id, "y")(p.zones()) {
		t.Error("a session does not see its own change")
	}
	late := open(t, b)
	p.awaitZones("a node joined", has(late.id, ""))
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	p.awaitZones("a node that left is gone", func(zones map[uuid.UUID]string) bool { return len(zones) == 3 })
	other.network.Close()
	p.awaitZones("a node died", has(other.id, "dead"))
	exec(t, b, `UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '1 minute' WHERE id = $1`, other.id) // its lease is over
	if err := b.Forget(t.Context(), other.id); err != nil {
		t.Fatal(err)
	}
	p.awaitZones("it is forgotten", func(zones map[uuid.UUID]string) bool { return len(zones) == 2 })
	if !has(quiet.id, "")(p.zones()) {
		t.Error("a refresh read a node that was not reported")
	}
}

// A notification of an older version says that any node may have changed; one about
// roles says that none has.
func TestRefreshHonorsPayload(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p, quiet := open(t, b), open(t, b)
	has := func(zone string) func(map[uuid.UUID]string) bool {
		return func(zones map[uuid.UUID]string) bool { return zones[quiet.id] == zone }
	}
	p.zones()
	p.drain()
	p.zones()
	for _, channel := range []string{b.names.ElectionsChannel(), b.names.NodesChannel()} {
		relabel(t, b, quiet.id, channel)
		exec(t, b, `SELECT pg_notify($1, '')`, channel)
		p.awaitZones("a change of any node is read", has(channel))
	}
	p.drain()
	p.zones()
	relabel(t, b, quiet.id, "later")
	exec(t, b, `SELECT pg_notify($1, $2)`, b.names.ElectionsChannel(), link.RolesOnly)
	if !p.wait(patience) {
		t.Fatal("a notification about roles does not end the wait")
	}
	if has("later")(p.zones()) {
		t.Error("a notification about roles caused a read of nodes")
	}
	if _, err := p.Members(); err != nil {
		t.Fatal(err)
	}
	if !has("later")(p.zones()) {
		t.Error("a refresh forgets what Members has read")
	}
}

// A notification about roles does not cause a read of nodes, so it does not replace the
// lost one of a move.
func TestMissedMoveIsReportedBesideChangesOfRoles(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	missed := func(payload string) bool {
		p.reportMissedMove(1, time.Now())
		p.listener.Notification(&pgconn.Notification{PID: p.listener.pid + 1, Channel: b.names.ElectionsChannel(), Payload: payload})
		p.listener.changedNodes.Take()
		p.reportMissedMove(2, time.Now())
		_, anyNode := p.listener.changedNodes.Take()
		return anyNode
	}
	if !missed(link.RolesOnly) {
		t.Error("after a notification about roles, a missed move is not reported")
	}
	if missed(uuid.NewString()) {
		t.Error("after the notification of a node, a missed move is reported")
	}
}

// A node joined, and its notification was lost: the next heartbeat reports that any node
// may have changed. It reports nothing after a notification.
func TestHeartbeatNoticesLostNotificationOfNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p, other := open(t, b), open(t, b)
	moves := func(zone string, notified bool) map[uuid.UUID]string {
		t.Helper()
		p.drain()
		p.beat()
		p.zones()
		relabel(t, b, other.id, zone)
		if notified {
			exec(t, b, sessionStatements[stmtMoved], b.names.NodesChannel(), uuid.NewString())
			p.drain()
		} else {
			exec(t, b, "SELECT nextval({membership:regclass})") // Set by hand: no server loses a notification on demand.
		}
		p.beat()
		return p.zones()
	}
	if zone := moves("lost", false)[other.id]; zone != "lost" {
		t.Errorf("after a lost notification the next heartbeat leaves a node as it was: its zone is %q, want lost", zone)
	}
	if zone := moves("of another node", true)[other.id]; zone != "lost" {
		t.Errorf("the registry was read although the notification arrived: the zone is %q", zone)
	}
}

// A node that never refreshes its members does not collect all nodes that ever joined.
func TestChangedNodesAreBounded(t *testing.T) {
	t.Parallel()
	var c signal.ChangedNodes
	for range signal.MaxChanged {
		c.Note(uuid.NewString())
	}
	if ids, anyNode := c.Take(); len(ids) != signal.MaxChanged || anyNode {
		t.Errorf("%d nodes noted, any: %t; want %d", len(ids), anyNode, signal.MaxChanged)
	}
	for range 3 * signal.MaxChanged {
		c.Note(uuid.NewString())
	}
	if ids, anyNode := c.Take(); len(ids) != 0 || !anyNode {
		t.Errorf("%d nodes noted, any: %t; want any node and no ids", len(ids), anyNode)
	}
}
