package postgres

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestSpreadDefinitionsAreSaved(t *testing.T) {
	t.Parallel()
	b, ctx := newBackend(t), t.Context()
	if err := b.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	first, second := uuid.New(), uuid.New()
	for _, save := range []struct {
		name, roles string
		by          uuid.UUID
	}{
		{"orders", `[{"role": "orders/0"}]`, first},
		{"orders", `[{"role":   "orders/0"}]`, second}, // the same
		{"mails", `[]`, first},
		{"mails", `[{"role": "mails/0", "requires": {"zone": "eu"}}]`, second},
	} {
		if err := b.SaveSpread(ctx, save.name, []byte(save.roles), save.by); err != nil {
			t.Fatal(err)
		}
	}
	spreads, err := b.Spreads(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"orders": `[{"role": "orders/0"}]`, "mails": `[{"role": "mails/0", "requires": {"zone": "eu"}}]`}
	for name, roles := range want {
		var got, expected any
		if err := json.Unmarshal(spreads[name], &got); err != nil {
			t.Fatalf("%s: %q: %v", name, spreads[name], err)
		}
		if err := json.Unmarshal([]byte(roles), &expected); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: %s, want %s", name, spreads[name], roles)
		}
	}
	if len(spreads) != len(want) {
		t.Errorf("%d spreads", len(spreads))
	}

	var by uuid.UUID
	if err := pgtest.Conn(t, pgtest.Shared(t).DSN()).QueryRow(ctx, b.names.SQL("SELECT updated_by FROM {spreads} WHERE name = 'orders'")).Scan(&by); err != nil {
		t.Fatal(err)
	}
	if by != first {
		t.Error("what had not changed was written again")
	}
}

// A role that was handed over is shown as its target's before the target leads.
func TestHoldersReportsReservations(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	from, to := open(t, b), open(t, b)
	role := tenure.NamedRole("orders/0")
	attempts, err := from.TryAcquire([]tenure.AcquireRequest{{Role: role}})
	if err != nil || attempts[0].Outcome != tenure.OutcomeGranted {
		t.Fatal(attempts, err)
	}
	holders := func() []tenure.RoleHolder {
		t.Helper()
		holders, err := to.Holders([]string{role.Name(), "orders/1"})
		if err != nil {
			t.Fatal(err)
		}
		return holders
	}
	want := tenure.RoleHolder{Role: role.Name(), Term: attempts[0].Term, Node: from.id}
	if got := holders(); len(got) != 1 || got[0] != want {
		t.Errorf("led: %+v, want %+v", got, want)
	}
	release := tenure.ReleaseRequest{Role: role, Term: want.Term, Reason: history.EndHandedOver, Target: to.id, Reservation: time.Minute}
	if err := from.Release([]tenure.ReleaseRequest{release}); err != nil {
		t.Fatal(err)
	}
	want.Node, want.Reserved = to.id, true
	if got := holders(); len(got) != 1 || got[0] != want {
		t.Errorf("handed over: %+v, want %+v", got, want)
	}
	attempts, err = to.TryAcquire([]tenure.AcquireRequest{{Role: role}})
	if err != nil || attempts[0].Outcome != tenure.OutcomeGranted {
		t.Fatal(attempts, err)
	}
	want = tenure.RoleHolder{Role: role.Name(), Term: attempts[0].Term, Node: to.id}
	if got := holders(); len(got) != 1 || got[0] != want {
		t.Errorf("taken: %+v, want %+v", got, want)
	}
	if err := to.Release([]tenure.ReleaseRequest{{Role: role, Term: want.Term, Reason: history.EndResigned}}); err != nil {
		t.Fatal(err)
	}
	if got := holders(); len(got) != 0 {
		t.Errorf("resigned: %+v", got)
	}
}
