package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Every term is listed once, with its end, whatever the reason of the end.
func TestHistoryListsEveryTermOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	p, other := open(t, b), open(t, b)
	first := p.take("scheduler")
	err := p.Release([]tenure.ReleaseRequest{{
		Role: tenure.NamedRole("scheduler"), Term: first.Term, Reason: history.EndSteppedDown, By: "alice",
	}})
	if err != nil {
		t.Fatal(err)
	}
	second := other.win("scheduler")
	p.drain() // it was alone, and is notified of the other node on its session
	began := time.Now()
	other.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", other.id)

	records, err := b.History(ctx, history.Query{Role: "scheduler"})
	if err != nil || len(records) != 2 {
		t.Fatalf("%+v, %v; want two terms", records, err)
	}
	if r := records[0]; r.Term != second.Term || r.Node != other.id || r.Reason != history.EndCrashed || r.By != "" ||
		r.Ended.Sub(began) > patience || r.PrecedingVacancy < 0 || r.PrecedingSilence != r.PrecedingVacancy {
		t.Errorf("no leader after one that crashed: %+v", r)
	}
	if r := records[1]; r.Term != first.Term || r.Node != p.id || r.Reason != history.EndSteppedDown || r.By != "alice" ||
		r.Ended.Before(r.Began) || r.PrecedingVacancy >= 0 || r.PrecedingSilence >= 0 {
		t.Errorf("a term whose leader was asked to end it: %+v", r)
	}

	third := p.win("scheduler")
	after, err := b.History(ctx, history.Query{})
	if err != nil || len(after) != 3 || after[1] != records[0] || after[2] != records[1] {
		t.Fatalf("%+v, %v; want the two terms as they were, and another", after, err)
	}
	if r := after[0]; r.Term != third.Term || !r.Ended.IsZero() || r.Reason != "" || r.PrecedingVacancy != third.PrecedingVacancy ||
		r.PrecedingVacancy != r.Began.Sub(records[0].Ended).Round(0) && r.PrecedingVacancy-r.Began.Sub(records[0].Ended) > time.Millisecond {
		t.Errorf("the current term: %+v", r)
	}
	for name, c := range map[string]struct {
		query history.Query
		want  []int64
	}{
		"of a node":        {history.Query{Node: p.id.String()}, []int64{third.Term, first.Term}},
		"of a dead node":   {history.Query{Node: "node-" + other.id.String()[:4]}, []int64{second.Term}},
		"of an id's begin": {history.Query{Node: strings.ToUpper(p.id.String()[:13])}, []int64{third.Term, first.Term}},
		"of too short one": {history.Query{Node: p.id.String()[:3]}, nil},
		"of another role":  {history.Query{Role: "other"}, nil},
		"the newest":       {history.Query{Limit: 1}, []int64{third.Term}},
		"the last of each": {history.Query{Latest: true}, []int64{third.Term}},
		"since the second": {history.Query{Since: records[0].Ended}, []int64{third.Term, second.Term}},
		"until the first":  {history.Query{Until: records[1].Began}, []int64{first.Term}},
	} {
		found, err := b.History(ctx, c.query)
		var terms []int64
		for _, r := range found {
			terms = append(terms, r.Term)
		}
		if err != nil || !slices.Equal(terms, c.want) {
			t.Errorf("%s: terms %v, %v; want %v", name, terms, err, c.want)
		}
	}
}

// A term whose leader crashed ends when the first other node noticed that, and not when
// the next term begins; and it is recorded for how long the role was silent.
func TestCrashEndsTermWhenNoticed(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]time.Duration{"in one statement": 0, "in steps": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			p := open(t, b, func(o *peerOptions) { o.timing.Settle = settle })
			other := open(t, b)
			other.take("scheduler")
			exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '1 hour'")
			exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '2 seconds' WHERE id = $1", other.id)
			seen := row[time.Time](t, b, "SELECT last_heartbeat FROM {nodes} WHERE id = $1", other.id)
			noticed := seen.Add(time.Second)
			p.deaths.Add(other.incarnation, &noticed)
			other.Abort()
			next := p.win("scheduler")

			records, err := b.History(context.Background(), history.Query{})
			if err != nil || len(records) != 2 {
				t.Fatalf("%+v, %v; want two terms", records, err)
			}
			now, before := records[0], records[1]
			if before.Reason != history.EndCrashed || !before.Ended.Equal(noticed) {
				t.Errorf("the term ended at %v (%s), want %v", before.Ended, before.Reason, noticed)
			}
			if vacant := now.Began.Sub(noticed); (now.PrecedingVacancy-vacant).Abs() > time.Microsecond || now.PrecedingVacancy != next.PrecedingVacancy {
				t.Errorf("the vacancy is %v and %v for the leader, want %v", now.PrecedingVacancy, next.PrecedingVacancy, vacant)
			}
			if silent := now.Began.Sub(seen); (now.PrecedingSilence - silent).Abs() > time.Microsecond {
				t.Errorf("the silence is %v, want %v", now.PrecedingSilence, silent)
			}
			eventually(t, b, "SELECT status = 'dead' AND died_at = $2 FROM {nodes} WHERE id = $1", other.id, noticed)
		})
	}
}

// If a node died while no other node ran, its term ended, at the latest, when
// the server had ended its session, and not when the next node started. The
// role was vacant from then on.
func TestUnseenEndIsBoundedByLease(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		found  bool // dead by the next node, before it acquires the role
		settle time.Duration
	}{
		"found by a node that came":            {found: true},
		"found by the successor":               {},
		"found by a successor that settles it": {settle: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			p := open(t, b)
			took := p.take("scheduler")
			p.Abort()
			exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '2 hours'")
			exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '1 hour'")
			over := row[time.Time](t, b, "SELECT last_heartbeat FROM {nodes} WHERE id = $1", p.id).Add(2 * timing().Lease)
			last := func() history.Term {
				t.Helper()
				records, err := b.History(context.Background(), history.Query{Until: over})
				if err != nil || len(records) != 1 {
					t.Fatalf("%+v, %v; want one term", records, err)
				}
				return records[0]
			}
			before := last()
			if before.Term != took.Term || !before.Ended.Equal(over) || before.Reason != history.EndLeaseExpired {
				t.Errorf("no node has joined since: %+v; want it to have ended at %v", before, over)
			}

			other := open(t, b, func(o *peerOptions) { o.timing.Settle = c.settle })
			if c.found {
				eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
				if now := last(); now != before {
					t.Errorf("the node was found dead: %+v; want %+v", now, before)
				}
			}
			next := other.win("scheduler")
			if now := last(); now != before {
				t.Errorf("the next term began: %+v; want %+v", now, before)
			}
			if least, most := time.Hour-2*timing().Lease, time.Hour-2*timing().Lease+patience; next.PrecedingVacancy < least || next.PrecedingVacancy > most {
				t.Errorf("the role was vacant for %v; want %v", next.PrecedingVacancy, least)
			}
		})
	}
}

// A term is over if its node has been forgotten, even if no node has led the
// role since.
func TestTermOfForgottenNodeIsOver(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	ctx := context.Background()
	for name, forget := range map[string]func(*testing.T, *Backend, uuid.UUID) error{
		"one node":      func(_ *testing.T, b *Backend, id uuid.UUID) error { return b.Forget(ctx, id) },
		"all dead ones": func(_ *testing.T, b *Backend, _ uuid.UUID) error { _, err := b.ForgetDead(ctx, time.Hour); return err },
		"at a join":     func(t *testing.T, b *Backend, _ uuid.UUID) error { open(t, b); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			watcher, p := open(t, b), open(t, b)
			p.take("abandoned")
			watcher.take("other")
			watcher.drain() // it was alone, and is notified of the other node on its session
			p.Abort()
			eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
			exec(t, b, "UPDATE {terms} SET acquired_at = acquired_at - interval '3 days' WHERE role = 'abandoned'")
			exec(t, b, "UPDATE {nodes} SET last_heartbeat = last_heartbeat - interval '2 days', died_at = died_at - interval '2 days' WHERE id = $1", p.id)
			before, err := b.History(ctx, history.Query{})
			if err != nil || len(before) != 2 || before[1].Ended.IsZero() || before[1].Reason != history.EndCrashed {
				t.Fatalf("%+v, %v; want two terms, of which the older one crashed", before, err)
			}
			if err := forget(t, b, p.id); err != nil {
				t.Fatal(err)
			}
			if row[bool](t, b, "SELECT EXISTS (SELECT FROM {nodes} WHERE id = $1)", p.id) {
				t.Fatal("the node was not forgotten")
			}
			after, err := b.History(ctx, history.Query{})
			if err != nil || !slices.Equal(after, before) {
				t.Errorf("%+v, %v; want %+v", after, err, before)
			}
		})
	}
}

// The history of nodes is written with the registry, in the same transactions.
func TestNodeHistoryFollowsRegistry(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	watcher, p := open(t, b), open(t, b)
	statuses := func(id uuid.UUID) []string {
		t.Helper()
		records, err := b.NodeHistory(ctx, history.Query{Node: id.String()})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range slices.Backward(records) {
			all = append(all, r.Previous+">"+r.Status)
		}
		return all
	}
	p.beat()
	watcher.drain() // it was alone, and is notified of the other node on its session
	if err := p.WriteDescription(tenure.Description{Status: tenure.StatusDraining}); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteDescription(tenure.Description{Status: tenure.StatusDraining, Version: "2"}); err != nil {
		t.Fatal(err)
	}
	p.Abort()
	eventually(t, b, "SELECT status = 'dead' FROM {nodes} WHERE id = $1", p.id)
	again := open(t, b, func(o *peerOptions) { o.id = p.id })
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{">active", "active>draining", "draining>dead", "dead>active", "active>left"}
	if got := statuses(p.id); !slices.Equal(got, want) {
		t.Errorf("the node went through %q; want %q", got, want)
	}
	if got := statuses(watcher.id); !slices.Equal(got, []string{">active"}) {
		t.Errorf("the other one went through %q", got)
	}
	records, err := b.NodeHistory(ctx, history.Query{Node: "node-" + p.id.String()[:4]})
	if err != nil || len(records) != len(want) || records[0].Node != p.id {
		t.Errorf("by the name of a node that left: %+v, %v", records, err)
	}
}

// A node's name can have the form of an id, such as that of a machine.
func TestHistoryFindsNamesThatLookLikeIDs(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	for _, name := range []string{"d41d8cd98f00b204e9800998ecf8427e", "7d444840-9dc0-11d1-b245-5ffdce74fad2"} {
		p := open(t, b, func(o *peerOptions) { o.name = name })
		term := p.take(name).Term
		for _, node := range []string{name, p.id.String(), strings.ReplaceAll(p.id.String(), "-", "")} {
			terms, err := b.History(t.Context(), history.Query{Node: node})
			if err != nil || len(terms) != 1 || terms[0].Term != term {
				t.Errorf("terms of the node %s, named %s, by %s: %+v, %v; want term %d", p.id, name, node, terms, err, term)
			}
			changes, err := b.NodeHistory(t.Context(), history.Query{Node: node})
			if err != nil || len(changes) != 1 || changes[0].Node != p.id {
				t.Errorf("changes of the node %s, named %s, by %s: %+v, %v; want one", p.id, name, node, changes, err)
			}
		}
	}
}

// A query for the last minute does not make the server read years.
func TestHistoryOfAMinuteReadsFewRows(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b := newBackend(t)
	ctx := context.Background()
	open(t, b)
	exec(t, b, `
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason)
SELECT 'scheduler', n, gen_random_uuid(), 'a', 1, at, at, 'resigned'
FROM generate_series(1, 20000) n, LATERAL (SELECT clock_timestamp() - interval '1 year' + n * interval '1 minute' AS at) times`)
	exec(t, b, `ANALYZE {history}`)
	asking := backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: b.config.Schema})
	for range 10 { // the server may change its plan after a few times
		if records, err := asking.History(ctx, history.Query{Since: time.Now().Add(-time.Minute)}); err != nil || len(records) != 0 {
			t.Fatalf("%d records, %v", len(records), err)
		}
	}
	asking.Close() // its statistics are written when its connection ends
	eventually(t, b, `SELECT idx_scan >= 10 FROM pg_stat_user_indexes WHERE schemaname = $1 AND indexrelname = 'tenure_history_ended_at'`, b.config.Schema)
}

// Someone may have copied rows into the history.
func TestTermBeginsIfTheHistoryHasItsPredecessor(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	leader := open(t, b)
	first := leader.take("scheduler")
	exec(t, b, `
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at)
SELECT role, term, node_id, node_name, incarnation, acquired_at FROM {terms}`)
	leader.release("scheduler", history.EndResigned)
	if next := open(t, b).take("scheduler"); next.Previous != first.Term {
		t.Errorf("the term follows term %d; want %d", next.Previous, first.Term)
	}
}
