package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A retired role is hidden until a node leads it.
func TestRetiredRoleIsHiddenUntilItIsLed(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	if err := b.Retire(ctx, "scheduler", "anna"); !errors.Is(err, dberr.ErrSchema) {
		t.Errorf("without a schema: %v", err)
	}
	p := open(t, b)
	first := p.take("scheduler")
	p.take("other")
	for role, want := range map[string]error{"scheduler": dberr.ErrHasLeader, "unheard-of": dberr.ErrUnknownRole, "": tenure.ErrInvalidRole} {
		if err := b.Retire(ctx, role, "anna"); !errors.Is(err, want) {
			t.Errorf("%q: %v; want %v", role, err, want)
		}
	}
	err := p.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("scheduler"), Term: first.Term, Reason: history.EndResigned}})
	if err != nil {
		t.Fatal(err)
	}
	roles := func(named ...tenure.Role) (names []string) {
		t.Helper()
		holders, err := b.Holders(ctx, named...)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range holders {
			names = append(names, h.Role)
		}
		return names
	}
	if got := roles(); len(got) != 2 {
		t.Errorf("before: %q", got)
	}
	if err := b.Retire(ctx, "scheduler", "anna"); err != nil {
		t.Fatal(err)
	}
	if got := roles(); len(got) != 1 || got[0] != "other" {
		t.Errorf("retired: %q", got)
	}
	if got := roles(tenure.NamedRole("scheduler")); len(got) != 1 {
		t.Errorf("by its name: %q", got)
	}
	records, err := b.History(ctx, history.Query{Role: "scheduler"})
	if err != nil || len(records) != 1 || records[0].Retired.IsZero() {
		t.Fatalf("%+v, %v; want the term, and that its role is retired", records, err)
	}
	if records, err := b.History(ctx, history.Query{Since: records[0].Retired}); err != nil || len(records) != 2 { // the other one continues
		t.Errorf("since then: %+v, %v", records, err)
	}
	if err := b.Retire(ctx, "scheduler", "anna"); err != nil {
		t.Errorf("again: %v", err)
	}
	if second := p.win("scheduler"); second.Term <= first.Term || len(roles()) != 2 {
		t.Errorf("led again: term %d after %d, %q", second.Term, first.Term, roles())
	}
}

// A term that begins at the same moment is not retired with its role.
func TestRetireSparesTermThatBegins(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	p := open(t, b)
	first := p.take("scheduler")
	err := p.Release([]tenure.ReleaseRequest{{Role: tenure.NamedRole("scheduler"), Term: first.Term, Reason: history.EndResigned}})
	if err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Conn(t, pgtest.Shared(t).DSN())
	if _, err := conn.Exec(ctx, b.names.SQL(`BEGIN; UPDATE {terms} SET term = term + 1`)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.Retire(ctx, "scheduler", "anna") }()
	eventually(t, b, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%retired_by%' AND query LIKE '%`+b.config.Schema+`%')`)
	if _, err := conn.Exec(ctx, `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, dberr.ErrHasLeader) {
		t.Errorf("got %v", err)
	}
}
