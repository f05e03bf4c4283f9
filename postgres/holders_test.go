package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestHoldersReportsSessionsOfRoles(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b := backendOn(t, server.Database(t), Config{}) // numeric keys are shared by the whole database
	ctx := context.Background()

	stranger := pgtest.Conn(t, b.connect.Config.ConnString())
	if _, err := stranger.Exec(ctx, "SET application_name = 'stranger'; SELECT pg_advisory_lock(-77), pg_advisory_lock(-1, 2)"); err != nil {
		t.Fatal(err)
	}
	holders, err := b.Holders(ctx, tenure.KeyRole(-77), tenure.KeyPairRole(-1, 2), tenure.KeyRole(78))
	if err != nil || len(holders) != 3 {
		t.Fatalf("without a schema: %v, %v; want three", holders, err)
	}
	for _, h := range holders[:2] {
		if h.Leader != nil || len(h.Sessions) != 1 || !h.Sessions[0].Foreign() || h.Sessions[0].Application != "stranger" {
			t.Errorf("%s: %+v; want the stranger", h.Role, h)
		}
	}
	if len(holders[2].Sessions) != 0 {
		t.Errorf("%s: %+v; want no session", holders[2].Role, holders[2])
	}
	if _, err := b.Holders(ctx, tenure.NamedRole("a")); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("a name without a schema: %v; want ErrSchema", err)
	}

	p := open(t, b)
	p.take("scheduler")
	p.take("archive")
	p.release("archive", history.EndResigned)
	holders, err = b.Holders(ctx)
	if err != nil || len(holders) != 2 || holders[0].Role != "archive" || holders[1].Role != "scheduler" {
		t.Fatalf("all: %+v, %v; want archive and scheduler", holders, err)
	}
	if h := holders[0]; h.Leader != nil || len(h.Sessions) != 0 {
		t.Errorf("archive: %+v; want no session", h)
	}
	if h := holders[1]; h.Leader == nil || h.Leader.NodeID != p.id || len(h.Sessions) != 1 ||
		h.Sessions[0].NodeID != p.id || h.Sessions[0].PID != int32(p.listener.pid) ||
		!strings.HasPrefix(h.Sessions[0].Application, "tenure node-") {
		t.Errorf("scheduler: %+v; want node %v with process %d", h, p.id, p.listener.pid)
	}
}

func TestDiagnoseReportsOnDatabase(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	severities := func() map[string]doctor.Severity {
		all := map[string]doctor.Severity{}
		for _, f := range b.Diagnose(t.Context()) {
			t.Logf("%-15s %-8s %s %s", f.Name, f.Severity, f.Detail, f.Advice)
			all[f.Name] = f.Severity
		}
		return all
	}
	if all := severities(); all["schema"] != doctor.OK || len(all) < 8 {
		t.Errorf("before the first node: %v", all)
	}
	if fsync := row[string](t, b, "SHOW fsync"); fsync == "off" {
		if all := severities(); all["durability"] != doctor.Warning {
			t.Errorf("without fsync: %v", all)
		}
	} else {
		t.Error("the servers of tests are expected to run without fsync")
	}
	open(t, b)
	for name, severity := range severities() {
		if severity == doctor.Failure {
			t.Errorf("%s: failure", name)
		}
	}
	exec(t, b, `ALTER TABLE {terms} DROP CONSTRAINT "{prefix}terms_role_term_key"`)
	if all := severities(); all["fencing index"] != doctor.Failure {
		t.Errorf("without the index: %v", all)
	}
	if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("open: %v; want ErrSchema", err)
	}
	for what, index := range map[string]struct{ create, drop string }{
		"only includes the term": {`CREATE UNIQUE INDEX unfit ON {terms} (role) INCLUDE (term)`, `DROP INDEX {schema}.unfit`},
		"is not unique":          {`CREATE INDEX unfit ON {terms} (role, term)`, `DROP INDEX {schema}.unfit`},
		"has only some rows":     {`CREATE UNIQUE INDEX unfit ON {terms} (role, term) WHERE term > 0`, `DROP INDEX {schema}.unfit`},
		"is of an expression":    {`CREATE UNIQUE INDEX unfit ON {terms} (role, term, (term + 1))`, `DROP INDEX {schema}.unfit`},
		"has more columns":       {`CREATE UNIQUE INDEX unfit ON {terms} (role, term, node_id)`, `DROP INDEX {schema}.unfit`},
		"is checked late": {`ALTER TABLE {terms} ADD CONSTRAINT unfit UNIQUE (role, term) DEFERRABLE`,
			`ALTER TABLE {terms} DROP CONSTRAINT unfit`},
	} {
		exec(t, b, index.create)
		if all := severities(); all["fencing index"] != doctor.Failure {
			t.Errorf("with an index that %s: %v", what, all)
		}
		if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrSchema) {
			t.Errorf("open with an index that %s: %v; want ErrSchema", what, err)
		}
		exec(t, b, index.drop)
	}
	// Set by hand: no program makes a newer schema yet.
	exec(t, b, `INSERT INTO {migrations} (feature, version) VALUES ('core', 99)`)
	if all := severities(); all["schema"] != doctor.Failure {
		t.Errorf("a newer schema: %v", all)
	}
	if _, err := tryOpen(t, b); !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "99") {
		t.Errorf("open: %v; want ErrSchema with the version", err)
	}
}

func TestRequestsReachLeaderAndNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first, second := open(t, b), open(t, b)
	ctx := context.Background()
	ask := func(kind tenure.RequestKind, target uuid.UUID) error {
		return b.Request(ctx, tenure.Request{Kind: kind, Role: "scheduler", Target: target, By: "tests"})
	}
	if err := ask(tenure.RequestStepDown, uuid.Nil); !errors.Is(err, tenure.ErrNoLeader) {
		t.Errorf("a role that no node leads: %v; want ErrNoLeader", err)
	}
	first.take("scheduler")
	if err := ask(tenure.RequestHandOver, uuid.New()); !errors.Is(err, tenure.ErrUnknownNode) {
		t.Errorf("to a node that does not exist: %v; want ErrUnknownNode", err)
	}
	first.drain()
	second.drain()
	asked := make(chan error, 1)
	go func() { asked <- ask(tenure.RequestHandOver, second.id) }()
	if !second.wait(patience) {
		t.Error("the offer did not wake the target")
	}
	if requests, err := second.Requests(); err != nil || len(requests) > 0 {
		t.Errorf("the target took %v, %v", requests, err)
	}
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	if !first.wait(patience) {
		t.Error("the request did not wake the leader")
	}
	if pending, err := first.Heartbeat(tenure.Load{}); err != nil || !pending {
		t.Errorf("the leader's heartbeat: pending %t, %v; want a request", pending, err)
	}
	if requests, err := second.Requests(); err != nil || len(requests) > 0 {
		t.Errorf("another node took %v, %v", requests, err)
	}
	requests, err := first.Requests()
	if err != nil || len(requests) != 1 {
		t.Fatalf("the leader took %v, %v; want one", requests, err)
	}
	if r := requests[0]; r.Kind != tenure.RequestHandOver || r.Role != "scheduler" || r.Target != second.id || r.By != "tests" || r.At.IsZero() {
		t.Errorf("the request is %+v", r)
	}
	if requests, err := first.Requests(); err != nil || len(requests) > 0 {
		t.Errorf("a second time: %v, %v; want none", requests, err)
	}
	// A request is for the term in which it was made.
	if err := ask(tenure.RequestStepDown, uuid.Nil); err != nil {
		t.Fatal(err)
	}
	first.release("scheduler", history.EndResigned)
	first.take("scheduler")
	if requests, err := first.Requests(); err != nil || len(requests) > 0 {
		t.Errorf("in the next term: %v, %v; want none", requests, err)
	}
}
