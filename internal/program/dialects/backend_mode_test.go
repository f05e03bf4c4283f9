package dialects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

// bothWays is an empty database and two ways to elect on it.
type bothWays struct {
	t               *testing.T
	sessions, lease string // data source names
}

// userWithSchema creates a user on a new database who owns a schema of the user's name,
// which comes first in the default search path, and returns the user's source.
func userWithSchema(t *testing.T) (source string) {
	t.Helper()
	server := pgtest.Shared(t)
	source = server.Database(t)
	database, _, _ := strings.Cut(source[strings.LastIndex(source, "/")+1:], "?")
	user := sandbox.UniqueName(t.Name())
	owner := kinds[0].connect(t, source)
	execute(t, owner, `CREATE ROLE "`+user+`" LOGIN SUPERUSER`, `CREATE SCHEMA "`+user+`" AUTHORIZATION "`+user+`"`)
	t.Cleanup(func() { execute(t, owner, `DROP OWNED BY "`+user+`"`, `DROP ROLE "`+user+`"`) })
	return server.DSNFor(user, database)
}

// onBothWays runs a test with leases on direct connections and through a pooler, and as a
// user who owns a schema.
func onBothWays(t *testing.T, test func(t *testing.T, w bothWays)) {
	t.Run("user with a schema", func(t *testing.T) {
		pgtest.Long(t)
		t.Parallel()
		source := userWithSchema(t)
		test(t, bothWays{t, source, source})
	})
	for _, throughPooler := range []bool{false, true} {
		t.Run(map[bool]string{false: "PostgreSQL", true: "PgBouncer"}[throughPooler], func(t *testing.T) {
			if throughPooler {
				pgtest.Long(t)
			}
			t.Parallel()
			server := pgtest.Shared(t)
			direct := server.Database(t)
			w := bothWays{t, direct, direct}
			if throughPooler {
				w.lease = pooled(t, server, direct)
			}
			test(t, w)
		})
	}
}

func (w bothWays) bySessions() *postgres.Backend {
	w.t.Helper()
	b, err := postgres.New(w.sessions, postgres.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(b.Close)
	return b
}

func (w bothWays) byLeases() *lease.Backend {
	w.t.Helper()
	return newBackend(w.t, kinds[0].connect(w.t, w.lease), lease.PostgreSQL, lease.Config{})
}

// open opens a node. refused reports whether it failed because of the mode.
func (w bothWays) open(b tenure.Backend, name string) (node *tenure.Node, refused bool) {
	w.t.Helper()
	node, err := tenure.Open(soon(w.t), b, tenure.Config{Name: name, Lease: 3 * time.Second})
	if err != nil && !errors.Is(err, dberr.ErrWrongMode) {
		w.t.Errorf("open %s: %v", name, err)
	}
	return node, err != nil
}

// If nodes with sessions and nodes with leases open concurrently on a new database, those of
// one kind fail.
func TestConcurrentModesOneIsRefused(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, w bothWays) {
		var (
			working        atomic.Int32
			terms          atomic.Int32
			opened         [2]atomic.Int32
			opening, group sync.WaitGroup
			start          = make(chan struct{})
		)
		ctx, end := context.WithCancel(context.Background())
		for i := range 8 {
			mode := i % 2
			var b tenure.Backend = w.bySessions()
			if mode == 1 {
				b = w.byLeases()
			}
			opening.Add(1)
			group.Go(func() {
				<-start
				node, refused := w.open(b, fmt.Sprintf("node-%d", i))
				opening.Done()
				if refused {
					return
				}
				defer node.Close(soon(t))
				opened[mode].Add(1)
				election, err := node.Election(tenure.NamedRole("scheduler"))
				if err != nil {
					t.Error(err)
					return
				}
				_ = election.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
					if working.Add(1) > 1 {
						t.Error("two nodes lead")
					}
					terms.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(20 * time.Millisecond):
					}
					working.Add(-1)
					return nil
				})
			})
		}
		close(start)
		opening.Wait()
		if !testkit.Within(patience, func() bool { return terms.Load() >= 5 }) {
			t.Error("no node leads")
		}
		end()
		group.Wait()
		if a, b := opened[0].Load(), opened[1].Load(); a+b != 4 || a > 0 && b > 0 {
			t.Errorf("%d nodes opened by sessions, %d by leases; want all of one kind", a, b)
		}
	})
}

// Sessions and leases with different prefixes are two installations, and each one has a
// leader of the same role.
func TestInstallationsHaveSeparateModes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	onBothWays(t, func(t *testing.T, w bothWays) {
		other := newBackend(t, kinds[0].connect(t, w.lease), lease.PostgreSQL, lease.Config{Prefix: "other_lease_"})
		for name, b := range map[string]tenure.Backend{"by sessions": w.bySessions(), "by leases": other} {
			node, refused := w.open(b, name)
			if refused {
				t.Fatalf("%s: refused", name)
			}
			t.Cleanup(func() { _ = node.Close(soon(t)) })
			election, err := node.Election(tenure.NamedRole("scheduler"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := election.Campaign(soon(t)); err != nil {
				t.Errorf("%s: %v; want it to lead", name, err)
			}
		}
	})
}

// An installation keeps its mode until an operator changes it while no node is running.
func TestModeChangesOnlyWithoutNodes(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, w bothWays) {
		sessions, leases := w.bySessions(), w.byLeases()
		ways := []struct {
			mode, other string
			own, others tenure.Backend
		}{
			{"sessions", "leases", sessions, leases},
			{"leases", "sessions", leases, sessions},
			{"sessions", "leases", sessions, leases},
		}
		for _, way := range ways {
			name := "by-" + way.mode
			node, refused := w.open(way.own, name)
			if refused {
				t.Fatalf("by %s: refused", way.mode)
			}
			if other, refused := w.open(way.others, "other"); !refused {
				t.Errorf("by %s, while a node elects by %s: it opened", way.other, way.mode)
				_ = other.Close(soon(t))
			}
			err := sessions.SetMode(soon(t), way.other)
			if !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), name) {
				t.Errorf("to %s while %s lives: %v; want ErrInstallationInUse and the node", way.other, name, err)
			}
			if err := node.Close(soon(t)); err != nil {
				t.Fatal(err)
			}
			if other, refused := w.open(way.others, "other"); !refused {
				t.Errorf("by %s, before the mode is changed: it opened", way.other)
				_ = other.Close(soon(t))
			}
			if err := sessions.SetMode(soon(t), way.other); err != nil {
				t.Fatal(err)
			}
		}
		through, err := postgres.New(w.lease, postgres.Config{}) // as the command does with the string for leases
		if err != nil {
			t.Fatal(err)
		}
		defer through.Close()
		for _, mode := range []string{"sessions", "leases"} {
			if err := through.SetMode(soon(t), mode); err != nil {
				t.Errorf("to %s, through what leases use: %v", mode, err)
			}
			if path := value(t, kinds[0].connect(t, w.lease), "SHOW search_path"); path != `"$user", public` {
				t.Errorf("the next program on the connection has the search path %s", path)
			}
			if node, refused := w.open(map[string]tenure.Backend{"sessions": sessions, "leases": leases}[mode], "last"); refused {
				t.Errorf("by %s: refused", mode)
			} else if err := node.Close(soon(t)); err != nil {
				t.Error(err)
			}
		}
		if err := sessions.SetMode(soon(t), "sessions"); err != nil {
			t.Fatal(err)
		}
		manual := newBackend(t, kinds[0].connect(t, w.lease), lease.PostgreSQL, lease.Config{ManualMigrations: true})
		if node, refused := w.open(manual, "manual"); !refused {
			t.Error("by leases, without the privilege to migrate: it opened")
			_ = node.Close(soon(t))
		}
		if err := sessions.SetMode(soon(t), "shares"); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("to a mode that does not exist: %v", err)
		}
	})
}

// TestModeChangedBySQLPermitsTwoLeaders: an UPDATE of the mode, which SetMode would refuse,
// removes what keeps leaders by sessions and by leases apart.
func TestModeChangedBySQLPermitsTwoLeaders(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, w bothWays) {
		lead := func(b tenure.Backend, name string) *tenure.Term {
			t.Helper()
			node, err := tenure.Open(soon(t), b, tenure.Config{Name: name, Lease: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = node.Close(context.Background()) })
			election, err := node.Election(tenure.NamedRole("scheduler"))
			if err != nil {
				t.Fatal(err)
			}
			if err := election.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return leads(t, election)
		}
		sessions := w.bySessions()
		first := lead(sessions, "by sessions")
		if err := sessions.SetMode(soon(t), "leases"); !errors.Is(err, dberr.ErrInstallationInUse) {
			t.Fatalf("tenure migrate mode: %v; want ErrInstallationInUse", err)
		}
		// Set by hand: the statement is the operator's.
		pgtest.Exec(t, pgtest.Conn(t, w.sessions), "UPDATE tenure_installation SET mode = 'leases'")
		second := lead(w.byLeases(), "by leases")
		if !first.Valid() || !second.Valid() {
			t.Errorf("the first leader's term is valid: %v, the second one's: %v; want both", first.Valid(), second.Valid())
		}
	})
}

// Diagnose reports the error that a node would get.
func TestDiagnoseReportsWrongMode(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, w bothWays) {
		sessions, leases := w.bySessions(), w.byLeases()
		severity := func(findings []doctor.Finding) doctor.Severity {
			at := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Name == "mode" })
			if at < 0 {
				t.Fatalf("no finding about the mode: %v", findings)
			}
			return findings[at].Severity
		}
		for _, mode := range []string{"sessions", "leases"} {
			if err := sessions.SetMode(soon(t), mode); err != nil {
				t.Fatal(err)
			}
			if got := severity(sessions.Diagnose(soon(t))); (got == doctor.OK) != (mode == "sessions") {
				t.Errorf("mode %s: for sessions %v", mode, got)
			}
			if got := severity(leases.Diagnose(soon(t))); (got == doctor.OK) != (mode == "leases") {
				t.Errorf("mode %s: for leases %v", mode, got)
			}
		}
	})
}

// The tables of leases stay while a node has a live lease.
func TestMigrateDownRefusesLiveNodes(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		b := newBackend(t, k.open(t), k.dialect, lease.Config{})
		node, err := tenure.Open(soon(t), b, tenure.Config{Name: "alive"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.MigrateDown(soon(t), 0); !errors.Is(err, dberr.ErrInstallationInUse) || !strings.Contains(err.Error(), `"alive"`) {
			t.Errorf("under a node: %v; want ErrInstallationInUse and the node", err)
		}
		if err := node.Close(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := b.MigrateDown(soon(t), 0); err != nil {
			t.Error(err)
		}
	})
}

// TestLeasesLeaveTheInstallation: when the tables of leases are removed, sessions
// whose tables are there elect again, with the lock keys that they had.
func TestLeasesLeaveTheInstallation(t *testing.T) {
	t.Parallel()
	onBothWays(t, func(t *testing.T, w bothWays) {
		sessions, leases := w.bySessions(), w.byLeases()
		ctx := soon(t)
		id := func() (id string) {
			t.Helper()
			if err := pgtest.Conn(t, w.sessions).QueryRow(ctx, `SELECT id::text FROM tenure_installation`).Scan(&id); err != nil {
				t.Fatal(err)
			}
			return id
		}
		if err := sessions.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		before := id()
		if err := sessions.SetMode(ctx, "leases"); err != nil {
			t.Fatal(err)
		}
		if err := leases.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		if err := leases.MigrateDown(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if after := id(); after != before {
			t.Errorf("the id of the installation was %s and is %s", before, after)
		}
		node, refused := w.open(sessions, "node")
		if refused {
			t.Fatal("sessions are refused")
		}
		if err := node.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
