package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

func TestNeededLocksAreMinimal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := server.LockCapacity{Transactions: rapid.IntRange(1, 5000).Draw(t, "transactions")}
		locks := rapid.IntRange(0, 100_000).Draw(t, "locks")
		c.PerTransaction = c.Needed(locks)
		if c.Usable() < locks {
			t.Errorf("with %d per transaction %d locks are usable, want %d", c.PerTransaction, c.Usable(), locks)
		}
		if c.PerTransaction--; c.Usable() >= locks && c.PerTransaction >= 10 {
			t.Errorf("with %d per transaction %d locks are usable, which is enough too", c.PerTransaction, c.Usable())
		}
	})
}

// The advice about a lock table that is too small is correct: with the
// suggested setting, the roles fit.
func TestSuggestedLockTableFitsPlannedRoles(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const roles = 600
	pg := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"max_locks_per_transaction": "10", "max_connections": "20",
	}})
	b := backendOn(t, pg.DSN(), Config{})
	if f := b.CheckLockTable(t.Context(), 10); f.Severity == doctor.Failure {
		t.Fatalf("without a schema: %+v", f)
	}
	p := open(t, b)
	if f := b.CheckLockTable(t.Context(), 10); strings.HasPrefix(f.Advice, "set ") {
		t.Errorf("ten roles: %+v; want no other setting", f)
	}
	p.take(numbered(roles)[0])
	f := b.CheckLockTable(t.Context(), roles)
	t.Logf("%s; %s", f.Detail, f.Advice)
	var needed int
	if _, err := fmt.Sscanf(f.Advice, "set max_locks_per_transaction to %d", &needed); err != nil || f.Severity != doctor.Warning {
		t.Fatalf("%+v; want a warning with the setting that is needed", f)
	}
	var last error
	for _, attempt := range p.try(numbered(roles)[1:]...) {
		if attempt.Outcome == tenure.OutcomeFailed {
			last = attempt.Err
		}
	}
	if !errors.Is(last, ErrLockTableFull) {
		t.Fatalf("the roles do not fit, but: %v", last)
	}
	t.Log(last)
	for _, said := range []string{"max_locks_per_transaction, which is 10,", fmt.Sprintf("to %d or more", needed)} {
		if !strings.Contains(last.Error(), said) {
			t.Errorf("%q does not say %q", last, said)
		}
	}
	for range 8 { // held roles stay held
		p.beat()
	}
	if d := found(t, b.Diagnose(t.Context()), "lock table"); d.Severity != doctor.Warning || !strings.Contains(d.Detail, "600 roles on 1 node need") {
		t.Errorf("the roles that were tried do not fit, but: %+v", d)
	}

	p.Abort()
	pg.Configure(t, map[string]string{"max_locks_per_transaction": fmt.Sprint(needed)})
	pg.Restart(t, "fast")
	p = open(t, b)
	for i, attempt := range p.try(numbered(roles)...) {
		if attempt.Outcome != tenure.OutcomeGranted && attempt.Outcome != tenure.OutcomePending { // the server has restarted
			t.Fatalf("role %d with the setting that was named: %+v", i, attempt)
		}
	}
	if d := found(t, b.Diagnose(t.Context()), "lock table"); strings.HasPrefix(d.Advice, "set ") {
		t.Errorf("with the setting that was named: %+v", d)
	}
}

// If another program holds most of the server's lock table, as a dump of many
// partitions does, candidates still try: only the server decides whether there
// is room.
func TestBystanderWithMostLocksDoesNotPreventAttempts(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t, pgtest.Options{Settings: map[string]string{
		"max_locks_per_transaction": "10", "max_connections": "20",
	}})
	b := backendOn(t, pg.DSN(), Config{})
	p := open(t, b)
	size := p.table.capacity.Size()
	bystander := pg.Conn(t)
	hold := func(from, n int) error {
		_, err := bystander.Exec(t.Context(), "SELECT pg_advisory_lock(i) FROM generate_series($1::bigint, $2) i", from, from+n-1)
		return err
	}
	if err := hold(1, size*3/4); err != nil {
		t.Fatal(err)
	}
	if err := p.recount(); err != nil {
		t.Fatal(err)
	}
	for i, attempt := range p.try(numbered(5)...) {
		if attempt.Outcome != tenure.OutcomeGranted {
			t.Errorf("role %d: %+v; want it granted: there is room", i, attempt)
		}
	}

	// Fewer locks are left than roles are requested: some are still acquired, and the
	// server still has room for heartbeats.
	taken := size * 3 / 4
	for n := size; n > 0; n /= 2 {
		for hold(taken+1, n) == nil {
			taken += n
		}
	}
	if _, err := bystander.Exec(t.Context(), "SELECT pg_advisory_unlock(i) FROM generate_series(1, 40) i"); err != nil {
		t.Fatal(err)
	}
	more := numbered(600)[5:]
	granted, full := 0, 0
	for i, attempt := range p.try(more[:90]...) {
		switch {
		case attempt.Outcome == tenure.OutcomeGranted:
			granted++
		case attempt.Outcome == tenure.OutcomeFailed && errors.Is(attempt.Err, ErrLockTableFull):
			full++
		default:
			t.Fatalf("role %d: %+v", i, attempt)
		}
	}
	t.Logf("with room for about 40 locks, %d roles were granted and %d refused", granted, full)
	if granted == 0 || full == 0 {
		t.Errorf("%d roles were granted and %d refused; want some of both", granted, full)
	}
	p.beat()

	// When the bystander has ended, the others are acquired.
	if _, err := bystander.Exec(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	for i, attempt := range p.try(more[:90]...) {
		if attempt.Outcome != tenure.OutcomeGranted && attempt.Outcome != tenure.OutcomeHeld { // busy: it holds it
			t.Errorf("role %d after the bystander's end: %+v", i, attempt)
		}
	}
	if len(p.heldRoles) != 95 {
		t.Errorf("%d roles are held; want 95", len(p.heldRoles))
	}
}

// found returns the finding with a name.
func found(t *testing.T, findings []doctor.Finding, name string) doctor.Finding {
	t.Helper()
	i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("nothing was found of the %s", name)
	}
	return findings[i]
}
