package dialects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/retry"
)

// fewestDamages is how many ways to damage a database there are at least.
const fewestDamages = 250

// repairCommand is the command of the program that calls MigrateRepair.
const repairCommand = "tenure migrate repair"

// TestBackendEveryDamageHasAWayOut: whatever differs from the tables that Migrate makes,
// either doctor and a node are content, or both name the same thing and the command that
// mends it. After the command a node leads, with a greater number than before.
func TestBackendEveryDamageHasAWayOut(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	onKinds(t, damageKinds, func(t *testing.T, k kind) {
		s := newDamageSite(t, k)
		all := s.cells(t)
		if len(all) < fewestDamages {
			t.Errorf("%d ways to damage a database; want at least %d", len(all), fewestDamages)
		}
		for _, cell := range all {
			t.Run(cell.name, func(t *testing.T) {
				if path := s.judge(t, cell); len(path) == 0 && !harmless.MatchString(cell.name) {
					t.Error("doctor and a node are content; want the damage to be noticed")
				}
			})
		}
	})
}

// TestBackendSomeDamagesHaveAWayOut is one cell of each kind.
func TestBackendSomeDamagesHaveAWayOut(t *testing.T) {
	t.Parallel()
	onKinds(t, damageKinds, func(t *testing.T, k kind) {
		s := newDamageSite(t, k)
		all := s.cells(t)
		for name, want := range map[string][]string{
			"all rows gone": nil, "tenure_lease_seats dropped": {repairCommand}, "tenure_lease_news emptied": nil, "tenure_lease_news.version dropped": {repairCommand},
			"tenure_lease_seats.term dropped": {repairCommand}, "tenure_lease_seats.role dropped": {repairCommand}, "tenure_lease_seats without UNIQUE (lock_key)": {repairCommand},
			"tenure_lease_seats with a trigger": {repairCommand}, "tenure_lease_history with a required column": {repairCommand}, "tenure_lease_sessions with a column": nil,
			"tenure_lease_sessions.lease_us of another type": {repairCommand}, "nodes without rows": nil, "only tenure_lease_seats": nil,
		} {
			t.Run(name, func(t *testing.T) {
				i := slices.IndexFunc(all, func(c damageCell) bool { return c.name == name })
				if i < 0 {
					t.Fatal("there is no such cell")
				}
				if path := s.judge(t, all[i]); !slices.Equal(path, want) {
					t.Errorf("commands that mended it: %q; want %q", path, want)
				}
			})
		}
	})
}

// damageKinds are the databases whose tables are compared.
var damageKinds = []kind{kinds[2], kinds[3]}

// harmless are the names of cells that need not be noticed: nothing that a node relies on
// has changed, or a node mends it when it opens.
var harmless = regexp.MustCompile(` emptied$|^all rows gone$|^nodes without rows$|^tenure_lease_news dropped$|^tenure_lease_news renamed$|^only tenure_lease_seats$|^all dropped$| with a column$| with an index$| with another default charset$`)

// damageSite has a database that was copied while a node led. The node has ended.
type damageSite struct {
	kind   kind
	server *mariatest.Server // of MariaDB
	copied string            // path or name of the copy
	last   int64             // number of the last term
}

func newDamageSite(t *testing.T, k kind) *damageSite {
	t.Helper()
	s := &damageSite{kind: k}
	source := k.source(t)
	if k.dialect == lease.MySQL {
		s.server = mariatest.Shared(t)
	}
	c := clusterOn(t, k, source)
	c.config.Lease = time.Second
	leader := c.join("leader")
	s.last = leads(t, leader.campaign(backendRole)).Number()
	db := k.connect(t, source)
	if k.dialect == lease.SQLite {
		s.copied = filepath.Join(t.TempDir(), "copied.db")
		execute(t, db, "VACUUM INTO '"+s.copied+"'")
	} else {
		s.copied = s.server.Database(t)
		copyTables(t, db, value(t, db, "SELECT DATABASE()"), s.copied)
	}
	expires := value(t, db, "SELECT max(expires_at) FROM tenure_lease_sessions") // of a heartbeat after the copy
	if err := leader.Close(soon(t)); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the lease of the leader has expired", func() bool { return strconv.FormatInt(time.Now().UnixMicro(), 10) > expires })
	return s
}

// leaseTables are the tables of leases.
var leaseTables = []string{"tenure_lease_history", "tenure_lease_news", "tenure_lease_requests", "tenure_lease_seats", "tenure_lease_sessions"}

func copyTables(t *testing.T, db *sql.DB, from, to string) {
	t.Helper()
	for _, table := range leaseTables {
		execute(t, db,
			fmt.Sprintf("CREATE TABLE %s.%s LIKE %s.%[2]s", to, table, from),
			fmt.Sprintf("INSERT INTO %s.%s SELECT * FROM %s.%[2]s", to, table, from))
	}
}

// copy returns the source of a copy of the database.
func (s *damageSite) copy(t *testing.T) string {
	t.Helper()
	if s.kind.dialect == lease.MySQL {
		name := s.server.Database(t)
		source := s.server.DSN(name)
		copyTables(t, s.kind.connect(t, source), s.copied, name)
		return source
	}
	path := filepath.Join(t.TempDir(), "leases.db")
	execute(t, s.kind.connect(t, "file:"+s.copied), "VACUUM INTO '"+path+"'")
	return "file:" + path + "?_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"
}

// judge damages a copy of the database and follows what doctor and a node say. It returns
// the commands.
func (s *damageSite) judge(t *testing.T, cell damageCell) (path []string) {
	t.Helper()
	source := s.copy(t)
	db := s.kind.connect(t, source)
	db.SetMaxOpenConns(1) // some settings belong to a connection
	execute(t, db, cell.statements...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		failures, err := s.examine(t, source)
		if len(failures) == 0 && err == nil {
			return path
		}
		command := wayOut(t, path, failures, err)
		path = append(path, command)
		if err := s.follow(t, source, command); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	t.Fatalf("still damaged after %q", path)
	return nil
}

// wayOut returns the command that doctor and a node name. Both must name the same damage.
func wayOut(t *testing.T, path, failures []string, err error) string {
	t.Helper()
	if len(failures) == 0 || err == nil {
		t.Fatalf("after %q: doctor finds %q, and a node: %v; want both content, or neither", path, failures, err)
	}
	command := commandIn(err.Error())
	if command == "" {
		t.Fatalf("after %q: doctor finds %q, and a node: %v; want a command that mends it", path, failures, err)
	}
	if !slices.ContainsFunc(failures, func(f string) bool { return commandIn(f) == command && strings.Contains(err.Error(), f) }) {
		t.Fatalf("after %q: doctor finds\n%s\nand a node\n%v\nwant the same thing and the same command", path, strings.Join(failures, "\n"), err)
	}
	return command
}

var statementIn = regexp.MustCompile("ALTER TABLE `[^`]*` ENGINE = InnoDB|SET GLOBAL [^:;]*? = [^ ,:;]*(?:\\([^)]*\\))?")

// commandIn returns the command that a text names.
func commandIn(text string) string {
	if strings.Contains(text, repairCommand) {
		return repairCommand
	}
	return statementIn.FindString(text)
}

// follow runs a command.
func (s *damageSite) follow(t *testing.T, source, command string) error {
	t.Helper()
	db := s.kind.connect(t, source)
	if command != repairCommand {
		execute(t, db, command)
		return nil
	}
	b := newBackend(t, db, s.kind.dialect, lease.Config{})
	planned, err := b.MigrateRepair(soon(t), true)
	if err != nil || len(planned) == 0 {
		return fmt.Errorf("a rehearsal of the repair has %d statements: %w", len(planned), err)
	}
	done, err := b.MigrateRepair(soon(t), false)
	if err == nil && !slices.Equal(planned, done) {
		err = fmt.Errorf("the repair ran %q; want %q, as in the rehearsal", done, planned)
	}
	return err
}

// examine returns the failures that doctor finds, and the error of a node. The number of a
// term is greater than those before.
func (s *damageSite) examine(t *testing.T, source string) (failures []string, err error) {
	t.Helper()
	db, err := sql.Open(s.kind.driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := newBackend(t, db, s.kind.dialect, lease.Config{})
	defer b.Close()
	for _, f := range b.Diagnose(soon(t)) {
		if f.Severity == doctor.Failure {
			failures = append(failures, strings.TrimSuffix(f.Detail+": "+f.Advice, ": "))
		}
	}
	number, err := leadOnce(soon(t), b)
	if err == nil && number <= s.last {
		t.Errorf("Invariant 2: the number of the next term is %d; want more than %d", number, s.last)
	}
	return failures, err
}

// leadOnce opens a node that leads once, and returns the number of its term.
func leadOnce(ctx context.Context, b *lease.Backend) (number int64, err error) {
	some := retry.Func(func(f retry.Failure) (time.Duration, bool) {
		return 100 * time.Millisecond, errors.Is(f.LastError, tenure.ErrHeld) || f.Attempt < 4 // a busy machine can be slow
	})
	node, err := tenure.Open(ctx, b, tenure.Config{Lease: 2 * time.Second, Retry: some})
	if err != nil {
		return 0, err
	}
	defer func() {
		if closeErr := node.Close(context.WithoutCancel(ctx)); err == nil {
			err = closeErr
		}
	}()
	election, err := node.Election(tenure.NamedRole(backendRole))
	if err != nil {
		return 0, err
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		return 0, fmt.Errorf("the node opened, and did not lead: %w", err)
	}
	return term.Number(), term.Resign(ctx)
}

// TestBackendRepairRefusesLiveNodes: a repair under a leader could begin a second term.
func TestBackendRepairRefusesLiveNodes(t *testing.T) {
	t.Parallel()
	onKinds(t, damageKinds, func(t *testing.T, k kind) {
		for _, damage := range []string{"ALTER TABLE tenure_lease_seats ADD COLUMN extra varchar(9)", "ALTER TABLE tenure_lease_sessions DROP COLUMN host"} {
			c := newCluster(t, k)
			c.config.Lease = time.Minute
			a := c.join("a")
			term := leads(t, a.campaign(backendRole))
			db := k.connect(t, c.source)
			execute(t, db, damage, "ALTER TABLE tenure_lease_history DROP COLUMN vacant_us")
			if _, err := a.backend.MigrateRepair(soon(t), false); !errors.Is(err, dberr.ErrInstallationInUse) {
				t.Errorf("after %s: a repair under a leader: %v; want ErrInstallationInUse", damage, err)
			}
			if !term.Valid() {
				t.Error("the refused repair ended the term")
			}
		}
	})
}

// TestBackendRepairLeavesTablesOfOtherPrograms: a table of the same name that has other
// columns is not made again.
func TestBackendRepairLeavesTablesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	onKinds(t, damageKinds, func(t *testing.T, k kind) {
		s := k.source(t)
		db := k.connect(t, s)
		execute(t, db, "CREATE TABLE tenure_lease_seats (id integer, role varchar(9), line integer)", "INSERT INTO tenure_lease_seats VALUES (1, 'A', 7)")
		b := newBackend(t, db, k.dialect, lease.Config{})
		if _, err := b.MigrateRepair(soon(t), false); !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "another program owns the table tenure_lease_seats: choose another prefix") {
			t.Errorf("a repair: %v; want ErrSchema that names the table", err)
		}
		if rows := value(t, db, "SELECT count(*) FROM tenure_lease_seats"); rows != "1" {
			t.Errorf("the table of the other program has %s rows; want 1", rows)
		}
	})
}

// TestBackendRepairKeepsNumbersGrowing: a table of roles that lost its numbers gets those of
// the history, which can be ahead of the clock.
func TestBackendRepairKeepsNumbersGrowing(t *testing.T) {
	t.Parallel()
	onKinds(t, damageKinds, func(t *testing.T, k kind) {
		s := newDamageSite(t, k)
		source := s.copy(t)
		db := k.connect(t, source)
		last := time.Now().Add(time.Hour).UnixMilli()
		execute(t, db, fmt.Sprintf("UPDATE tenure_lease_seats SET term = %d", last)) // Set by hand: a clock that is an hour ahead.
		b := newBackend(t, db, k.dialect, lease.Config{})
		if _, err := leadOnce(soon(t), b); err != nil { // moves the term to the history
			t.Fatal(err)
		}
		execute(t, db, "UPDATE tenure_lease_seats SET term = 0") // Set by hand: a row whose number was lost.
		execute(t, db, "ALTER TABLE tenure_lease_sessions DROP COLUMN host")
		if err := s.follow(t, source, repairCommand); err != nil {
			t.Fatal(err)
		}
		if number, err := leadOnce(soon(t), b); err != nil || number <= last {
			t.Errorf("Invariant 2: the number of the next term is %d, %v; want more than %d", number, err, last)
		}
	})
}
