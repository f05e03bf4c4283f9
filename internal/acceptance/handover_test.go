package acceptance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// past is a row of the history.
type past struct {
	Term        int64
	NodeName    string
	Reason      string
	From, To    time.Time
	VacantMS    *float64
	Incarnation int
}

func (c *cluster) history() []past {
	c.t.Helper()
	rows, err := pgtest.Conn(c.t, c.dsn).Query(c.t.Context(), `
		SELECT term, node_name, end_reason, acquired_at, ended_at, vacant_ms, incarnation
		FROM `+c.quoted("history")+` WHERE role = $1 ORDER BY term`, role)
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[past])
	if err != nil {
		c.t.Fatal(err)
	}
	return all
}

// Every way to give a role up, each followed by the other node, and the record
// of it.
func TestOtherNodeLeadsAfterRelease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one := c.join("one")
	people, err := postgres.New(c.dsn, c.db) // as the command line asks
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(people.Close)
	ask := func(kind tenure.RequestKind, target uuid.UUID) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		request := tenure.Request{Kind: kind, Role: role, Target: target, By: "a test"}
		if err := people.Request(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	end := func(term *tenure.Term, want error) {
		t.Helper()
		if cause := causeOfEnd(t, term); !errors.Is(cause, want) {
			t.Errorf("the term ended because of %v; want %v", cause, want)
		}
	}

	first := one.leads()
	two := c.join("two")
	ask(tenure.RequestStepDown, uuid.Nil)
	second := two.leads()
	end(first, tenure.ErrSteppedDown)

	three := c.join("three")
	ask(tenure.RequestHandOver, three.ID())
	third := three.leads()
	end(second, tenure.ErrHandedOver)

	if err := three.election.HandOver(t.Context(), one.ID()); err != nil {
		t.Fatal(err)
	}
	fourth := one.leads()
	end(third, tenure.ErrHandedOver)

	begun := time.Now()
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, fifth := c.someoneElse(fourth.Number(), two, three)
	end(fourth, tenure.ErrStopping)
	if took := time.Since(begun); took > slack {
		t.Errorf("after a graceful end no node led for %v", took)
	}

	if err := last.election.StepDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	end(fifth, tenure.ErrSteppedDown)
	c.someoneElse(fifth.Number(), two, three)

	history := c.history()
	want := []past{
		{Term: first.Number(), NodeName: "one", Reason: "stepped_down"},
		{Term: second.Number(), NodeName: "two", Reason: "handed_over"},
		{Term: third.Number(), NodeName: "three", Reason: "handed_over"},
		{Term: fourth.Number(), NodeName: "one", Reason: "shutdown"},
		{Term: fifth.Number(), NodeName: last.Name(), Reason: "resigned"},
	}
	if len(history) != len(want) {
		t.Fatalf("the history has %d rows, want %d: %v", len(history), len(want), history)
	}
	for i, got := range history {
		if got.Term != want[i].Term || got.NodeName != want[i].NodeName || got.Reason != want[i].Reason {
			t.Errorf("row %d is %+v, want %+v", i, got, want[i])
		}
		if !got.From.Before(got.To) {
			t.Errorf("term %d lasted from %v to %v", got.Term, got.From, got.To)
		}
		if i == 0 {
			continue
		}
		vacant := got.From.Sub(history[i-1].To)
		if got.VacantMS == nil || vacant < 0 {
			t.Errorf("term %d began %v after the last one; recorded: %v", got.Term, vacant, got.VacantMS)
		} else if recorded := time.Duration(*got.VacantMS * float64(time.Millisecond)); (recorded - vacant).Abs() > slack {
			t.Errorf("the role was vacant for %v before term %d; recorded: %v", vacant, got.Term, recorded)
		}
	}
}

// The end of a term is recorded before its lock is free, and announced after that:
// the next leader never finds a term that looks abandoned, and a node that receives
// the announcement finds the lock free.
func TestEndOfTermIsRecordedBeforeUnlock(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one, two := c.join("one"), c.join("two")
	leader, _ := c.someoneElse(0, one, two)
	from, to := one, two
	if leader == two {
		from, to = two, one
	}
	listener, reader := pgtest.Conn(t, c.dsn), pgtest.Conn(t, c.dsn)
	execute(t, listener, "LISTEN "+pgx.Identifier{c.schema + "_tenure_"}.Sanitize())
	const held = `
		SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND a.application_name = 'tenure ' || $1 || ' session' AND a.pid = $2`
	pid := func(m *member) int {
		return value[int](t, reader, "SELECT pid FROM "+c.quoted("nodes")+" WHERE id = $1", m.ID())
	}
	const rounds = 10
	for range rounds {
		owner, done := pid(from), make(chan error, 1)
		handOver := tenure.Request{Kind: tenure.RequestHandOver, Target: to.ID()} // no offer, so that the first notification is of the end
		go func() { done <- from.election.HandleRequest(t.Context(), handOver) }()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := listener.WaitForNotification(ctx) // nothing else happens here
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if n := value[int](t, reader, held, from.Name(), owner); n != 0 {
			t.Errorf("%s still holds %d locks when others learn that it resigned", from.Name(), n)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		to.leads()
		from, to = to, from
	}
	reasons := map[string]int{}
	for _, row := range c.history() {
		reasons[row.Reason]++
	}
	if reasons["handed_over"] != rounds || len(reasons) != 1 {
		t.Errorf("the terms ended so: %v; want %d handed over", reasons, rounds)
	}
}
