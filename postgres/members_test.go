package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/records"
)

// silence changes the registry as if the node's last heartbeat was some time ago.
func (p *peer) silence(d time.Duration) {
	p.t.Helper()
	exec(p.t, p.backend, "UPDATE {nodes} SET last_heartbeat = clock_timestamp() - $2::float8 * interval '1 s' WHERE id = $1", p.id, d.Seconds())
}

func requestOfNode(b *Backend, kind tenure.RequestKind, node uuid.UUID) error {
	return b.Request(context.Background(), tenure.Request{Kind: kind, Node: node, By: "tests"})
}

// A threshold can be longer than an integer of the database has milliseconds.
func TestMarkDeadTakesThresholdsOfAnyLength(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	const day = 24 * time.Hour
	p.silence(50 * day)
	for _, threshold := range []time.Duration{math.MaxInt64, 60 * day, 40 * day} {
		dead, err := b.MarkDead(t.Context(), threshold)
		if err != nil || len(dead) > 0 != (threshold < 50*day) {
			t.Errorf("silent for longer than %v: %v, %v; the node was silent for 50 days", threshold, dead, err)
		}
	}
	for _, age := range []time.Duration{math.MaxInt64, 60 * day} {
		if gone, err := b.ForgetDead(t.Context(), age); err != nil || len(gone) > 0 {
			t.Errorf("forgotten after %v: %v, %v", age, gone, err)
		}
	}
}

// A node is not marked as dead while it may trust its terms, whatever threshold
// is given.
func TestMarkDeadSparesTrustedNodes(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	p := open(t, b, func(o *peerOptions) { o.timing.Lease = 30 * time.Second })
	mark := func(threshold time.Duration, want ...uuid.UUID) {
		t.Helper()
		dead, err := b.MarkDead(ctx, threshold)
		if err != nil || !slices.Equal(dead, want) {
			t.Errorf("marked as dead: %v, %v; want %v", dead, err, want)
		}
	}
	p.silence(20 * time.Second)
	mark(time.Second) // its lease is valid
	p.silence(40 * time.Second)
	mark(time.Minute) // below the threshold
	if err := requestOfNode(b, tenure.RequestUndrain, p.id); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("a request to a node whose lease is over: %v; want ErrUnknownNode", err)
	}
	exec(t, b, "INSERT INTO {requests} (kind, role, term, node_id) VALUES ('drain', '', 0, $1), ('stepdown', 'role', 7, $1)", p.id)
	mark(time.Second, p.id)
	mark(time.Second)
	if left := row[string](t, b, "SELECT string_agg(kind, ' ') FROM {requests}"); left != "drain" {
		t.Errorf("the requests to a dead node that are left: %q; want the one for the node, which can come back", left)
	}
	for name, err := range map[string]error{
		"Describe":  p.WriteDescription(tenure.Description{Status: tenure.StatusActive}),
		"Heartbeat": func() error { _, err := p.Heartbeat(tenure.Load{}); return err }(),
	} {
		if !errors.Is(err, tenure.ErrSuperseded) {
			t.Errorf("%s of a node that was marked as dead: %v; want it superseded", name, err)
		}
	}
}

// A live node that was forgotten returns with its next session.
func TestForgottenLiveNodeReturns(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	p, other := open(t, b), open(t, b)
	if err := b.Forget(ctx, p.id); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("a live node: %v; want ErrUnknownNode", err)
	}
	if err := b.Forget(ctx, uuid.New()); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("a node that does not exist: %v; want ErrUnknownNode", err)
	}
	exec(t, b, "UPDATE {nodes} SET status = 'dead', last_heartbeat = last_heartbeat - interval '1 min' WHERE id = $1", p.id)
	exec(t, b, "INSERT INTO {requests} (kind, role, term, node_id) VALUES ('drain', '', 0, $1)", p.id)
	other.drain()
	if err := b.Forget(ctx, p.id); err != nil {
		t.Fatal(err)
	}
	if !other.wait(patience) {
		t.Error("the others were not notified")
	}
	if row[bool](t, b, "SELECT EXISTS (SELECT FROM {requests})") {
		t.Error("requests to a forgotten node are left")
	}
	if err := p.WriteDescription(tenure.Description{Status: tenure.StatusActive}); !errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("describing a forgotten node: %v; want its session lost", err)
	}
	p.Abort()
	again := open(t, b, func(o *peerOptions) { o.id = p.id })
	if err := again.WriteDescription(tenure.Description{Status: tenure.StatusActive, Version: "2"}); err != nil {
		t.Error(err)
	}

	other.drain() // it was alone, and is notified of the other node on its session
	again.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", again.id)
	for _, c := range []struct {
		age  time.Duration
		want []uuid.UUID
	}{{time.Hour, nil}, {0, nil}, {time.Minute, []uuid.UUID{again.id}}, {0, nil}} {
		if c.age == time.Minute { // its lease has expired
			exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '2 min' WHERE id = $1", again.id)
		}
		if gone, err := b.ForgetDead(ctx, c.age); err != nil || !slices.Equal(gone, c.want) {
			t.Errorf("dead for %v, forgotten: %v, %v; want %v", c.age, gone, err, c.want)
		}
	}
	members, err := b.Members(ctx)
	if err != nil || len(members) != 1 || members[0].ID != other.id {
		t.Errorf("left are %+v, %v; want the live one", members, err)
	}
}

// A requester that stops in the middle of a drain request blocks no session.
func TestStalledRequestBlocksNoSession(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p, other := open(t, b), open(t, b)
	if err := requestOfNode(b, tenure.RequestDrain, p.id); err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), b.names.SQL(records.LockRequests)); err != nil {
		t.Fatal(err)
	}
	if requests, err := p.Requests(); err != nil || len(requests) != 1 {
		t.Errorf("the node took %v, %v; want one request", requests, err)
	}
	p.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
	other.beat()
}

func TestAutoscalingViewCountsLiveNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	type figures struct {
		Active, Joining, Draining   int
		Mean, Highest, Total, CPU   float64
		Connections, Jobs, InFlight int
	}
	read := func() (f figures) {
		t.Helper()
		err := pgtest.Conn(t, b.connect.Config.ConnString()).QueryRow(t.Context(), b.names.SQL(`
			SELECT active_nodes, joining_nodes, draining_nodes, mean_load, highest_load, total_load, mean_cpu_usage,
				connections, jobs, in_flight
			FROM {autoscaling}`)).
			Scan(&f.Active, &f.Joining, &f.Draining, &f.Mean, &f.Highest, &f.Total, &f.CPU, &f.Connections, &f.Jobs, &f.InFlight)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	busy, idle, draining, joining, silent := open(t, b, lasting), open(t, b, lasting), open(t, b, lasting), open(t, b, lasting), open(t, b)
	for p, load := range map[*peer]tenure.Load{
		busy:     {Connections: 10, Jobs: 20, InFlight: 30, CPU: 100, Memory: 60},
		idle:     {Connections: 1, Jobs: 2, InFlight: 3, CPU: 20, Memory: 20},
		draining: {Connections: 100, Jobs: 200, InFlight: 300, CPU: 50, Memory: 50},
		silent:   {Connections: 1000, Jobs: 1000, InFlight: 1000, CPU: 100, Memory: 100},
	} {
		if _, err := p.Heartbeat(load); err != nil {
			t.Fatal(err)
		}
	}
	for p, status := range map[*peer]tenure.NodeStatus{draining: tenure.StatusDraining, joining: tenure.StatusJoining} {
		if err := p.WriteDescription(tenure.Description{Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	silent.silence(timing().Lease + time.Millisecond) // and not yet marked
	want := figures{
		Active: 2, Joining: 1, Draining: 1, Mean: 0.5, Highest: 0.8, Total: 1, CPU: 60, Connections: 111, Jobs: 222, InFlight: 333,
	}
	if got := read(); got != want {
		t.Errorf("the view says %+v, want %+v", got, want)
	}
	for _, p := range []*peer{busy, idle, draining, joining} {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); got != (figures{}) {
		t.Errorf("without nodes the view says %+v", got)
	}
}

// A user with the grants who does not own the schema is allowed to do
// everything that a member does.
func TestRestrictedMemberNeedsNodeGrantsOnly(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	owner := backendOn(t, server.DSN(), Config{})
	b := backendOn(t, user(t, server, "node"), Config{})
	ctx := context.Background()
	if err := owner.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	exec(t, owner, owner.NodeGrants("node"))
	p, other := open(t, b, named("a")), open(t, b, named("b"))
	description := tenure.Description{Status: tenure.StatusActive, Labels: map[string]string{"zone": "x"}}
	p.watch.setWatchDown(true)
	p.drain() // also sends a notification
	members, readErr := p.Members()
	_, holdersErr := p.Holders([]string{"scheduler"})
	all, allErr := b.Members(ctx)
	_, deadErr := b.MarkDead(ctx, time.Minute)
	_, goneErr := b.ForgetDead(ctx, time.Hour)
	if err := errors.Join(p.WriteDescription(description), readErr, holdersErr, allErr, deadErr, goneErr,
		requestOfNode(b, tenure.RequestDrain, p.id), requestOfNode(b, tenure.RequestUndrain, other.id)); err != nil {
		t.Error(err)
	}
	p.beat() // finds the request, which is read after its report
	if requests, err := p.Requests(); err != nil || len(requests) != 1 {
		t.Errorf("the node took %v, %v; want one request", requests, err)
	}
	if len(members) != 2 || len(all) != 2 {
		t.Errorf("members: %d and %d, want 2", len(members), len(all))
	}
	if f := b.CheckLockTable(ctx, 100); f.Severity != doctor.OK {
		t.Errorf("the lock table: %+v", f)
	}
	if row[bool](t, b, "SELECT watching FROM {nodes} WHERE id = $1", p.id) {
		t.Error("the node did not say that it does not watch")
	}
	row[int](t, b, "SELECT active_nodes FROM {autoscaling}")
}

// Migrating down from a later version restores the earlier function.
func TestMigrationDownRestoresWatch(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	const source = `
		SELECT p.prosrc
		FROM pg_proc p
		WHERE p.oid = '{watch}(integer, integer, integer, bigint, integer, integer)'::regprocedure`
	_, watch, _ := strings.Cut(core.Steps[0].Up, "CREATE FUNCTION {watch}")
	b.installation.Core = &schema.Feature{Name: core.Name, Steps: append(slices.Clone(core.Steps),
		schema.Step{Up: `ALTER TABLE {nodes} ADD COLUMN second integer`, Down: `ALTER TABLE {nodes} DROP COLUMN second`},
		schema.Step{Up: watchThatKeepsTables, Down: `ALTER TABLE {nodes} ADD COLUMN undone integer; CREATE OR REPLACE FUNCTION {watch}` + watch},
	)}
	if err := b.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	quoted := b.names.SQL(source)
	latest := row[string](t, b, quoted)
	if err := b.MigrateDown(ctx, core.Name, core.Newest()); err != nil {
		t.Fatal(err)
	}
	body := strings.Split(b.names.SQL(watch), schema.FunctionQuote)[1]
	if first := row[string](t, b, quoted); first != body || first == latest {
		t.Error("the watch function is not that of the first version")
	}
	const columns = `
		SELECT count(*) FILTER (WHERE attname = 'second') = 0 AND count(*) FILTER (WHERE attname = 'undone') = 1
		FROM pg_attribute
		WHERE attrelid = {nodes:regclass} AND NOT attisdropped`
	if !row[bool](t, b, columns) {
		t.Error("the second and third version were not both undone")
	}
	if version, err := b.SchemaVersion(ctx); version != 1 || err != nil {
		t.Errorf("version %d, %v; want 1", version, err)
	}
	b.installation.Core = core
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	second.drain()
	first.Abort()
	second.win("scheduler")
}
