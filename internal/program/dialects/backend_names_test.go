package dialects

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// Texts of the refusals.
const (
	linkedText  = "has 2 names (hard links)"
	mountedText = "is mounted alone"
)

// link gives the file of a source a second name in another directory. It returns the
// source with that name.
func link(t *testing.T, source string) (second string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "second.db")
	if err := os.Link(pathOf(source), path); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(source, pathOf(source), path, 1)
}

// needsMounts skips a test that cannot mount a file.
func needsMounts(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: the mount of a file needs root")
	}
}

// refused waits until a process has been refused. If it leads instead, first is the other
// leader of the same file.
func refused(t *testing.T, p *process, first *tenure.Election, want string) {
	t.Helper()
	switch r := p.await("refused", "leads"); {
	case r.Kind == "leads":
		t.Errorf("one file has two leaders: term %d of %s under the second name; under the first one, the node leads: %v", r.Term, p.name, first.IsLeader())
	case !strings.Contains(r.Error, want):
		t.Errorf("%s was refused with %q; want %q", p.name, r.Error, want)
	}
}

// A hard link ends the term of the leader at its next poll, and no node leads under the
// second name.
func TestBackendHardLinkOfFileHasNoLeader(t *testing.T) {
	t.Parallel()
	const length, byPoll = 27 * time.Second, 6 * time.Second // a heartbeat comes after 9 s
	c := newCluster(t, sqliteKind)
	c.config.Lease = length
	a := c.join("a").campaign(backendRole)
	term := leads(t, a)
	second := clusterOn(t, sqliteKind, link(t, c.source))
	linked := time.Now()
	refused(t, second.launch(childStands, "b"), a, linkedText)
	if cause := ended(t, term); !errors.Is(cause, tenure.ErrSuperseded) || !strings.Contains(cause.Error(), linkedText) {
		t.Errorf("the term ended with %v; want ErrSuperseded and %q", cause, linkedText)
	}
	if took := time.Since(linked); took > byPoll {
		t.Errorf("the term ended %v after the link was made; want at most %v", took, byPoll)
	}
}

// When the hard link is gone, the node leads again.
func TestBackendLeadsAgainWithoutHardLink(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	c := newCluster(t, sqliteKind)
	a := c.join("a").campaign(backendRole)
	term := leads(t, a)
	second := link(t, c.source)
	_ = ended(t, term)
	c.logged.wants(t, tenure.ErrRefused)
	remove(t, pathOf(second))
	if next := leads(t, a); next.Number() <= term.Number() {
		t.Errorf("term %d follows term %d", next.Number(), term.Number())
	}
}

// A node that has the file alone as a mount, as a container with a volume of one file, is
// refused while another node leads on the same file.
func TestBackendMountedFileIsRefused(t *testing.T) {
	t.Parallel()
	needsMounts(t)
	c := newCluster(t, sqliteKind)
	a := c.join("a").campaign(backendRole)
	term := leads(t, a)
	place := filepath.Join(t.TempDir(), "with a space.db")
	if err := os.WriteFile(place, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inside := clusterOn(t, sqliteKind, strings.Replace(c.source, pathOf(c.source), place, 1))
	inside.mounted = pathOf(c.source)
	refused(t, inside.launch(childMounts, "b"), a, mountedText)
	if !term.Valid() {
		t.Errorf("term %d ended although its file has one name here", term.Number())
	}
}

// A mount of the leader's file over its own path ends the term.
func TestBackendMountOverFileEndsTheTerm(t *testing.T) {
	t.Parallel()
	needsMounts(t)
	c := newCluster(t, sqliteKind)
	if r := c.launch(childMounts, "a").await("ended"); !strings.Contains(r.Error, mountedText) {
		t.Errorf("the term ended with %q; want %q", r.Error, mountedText)
	}
}

// No transaction is fenced while the file has two names.
func TestBackendFenceOnFileWithTwoNamesIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sqliteKind)
	a := c.join("a")
	term := leads(t, a.campaign(backendRole))
	inTx(t, a.db, func(tx *sql.Tx) {
		link(t, c.source)
		if err := lease.Fence(soon(t), tx, term); !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("a fence on a file with two names: %v; want ErrRefused", err)
		}
	})
}

// Doctor and migrations refuse a file with two names before they write to it.
func TestBackendSecondNameIsDiagnosed(t *testing.T) {
	t.Parallel()
	source := sqliteKind.source(t)
	sqliteKind.fill(t, source)
	for name, source := range map[string]string{"second": link(t, source), "first": source} {
		backend := newBackend(t, sqliteKind.connect(t, source), lease.SQLite, lease.Config{Prefix: name})
		if err := backend.Migrate(soon(t)); !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("a migration under the %s name: %v; want ErrRefused", name, err)
		}
		findings := backend.Diagnose(soon(t))
		if last := findings[len(findings)-1]; last.Severity != doctor.Failure || !strings.Contains(last.Detail, linkedText) {
			t.Errorf("the %s name: %+v; want a failure with %q", name, findings, linkedText)
		}
	}
}

// fill creates the tables and closes all connections: within one process, SQLite itself
// fails under a second name of a file that is open.
func (k kind) fill(t *testing.T, source string) {
	t.Helper()
	db, err := sql.Open(k.driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := newBackend(t, db, k.dialect, lease.Config{}).Migrate(soon(t)); err != nil {
		t.Fatal(err)
	}
	if err := newStore(t, k, db, time.Hour).Migrate(soon(t)); err != nil {
		t.Fatal(err)
	}
}

// A store refuses a file with two names in all calls, under both names. When the link is
// gone, the leader renews its lease.
func TestStoreRefusesSecondNameOfFile(t *testing.T) {
	t.Parallel()
	source := sqliteKind.source(t)
	sqliteKind.fill(t, source)
	second := link(t, source)
	a, b := uuid.New(), uuid.New()
	other, err := newStore(t, sqliteKind, sqliteKind.connect(t, second), time.Hour).Elect(t.Context(), "n", b)
	if !errors.Is(err, tenure.ErrRefused) {
		t.Errorf("under the second name: %+v, %v; want ErrRefused", other, err)
	}
	remove(t, pathOf(second))

	db := sqliteKind.connect(t, source)
	elections := newStore(t, sqliteKind, db, time.Hour)
	first, err := elections.Elect(t.Context(), "n", a)
	if err != nil {
		t.Fatal(err)
	}
	second = link(t, source)
	for _, namespace := range []string{"n", "new"} {
		if held, err := elections.Elect(t.Context(), namespace, a); !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("under the first name: %+v, %v; want ErrRefused", held, err)
		}
	}
	if held, err := elections.Leader(t.Context(), "n"); !errors.Is(err, tenure.ErrRefused) {
		t.Errorf("the leader under the first name: %+v, %v; want ErrRefused", held, err)
	}
	inTx(t, db, func(tx *sql.Tx) {
		if held, err := elections.In(tx).Elect(t.Context(), "n", a); !errors.Is(err, tenure.ErrRefused) {
			t.Errorf("in a caller's transaction: %+v, %v; want ErrRefused", held, err)
		}
	})
	remove(t, pathOf(second))
	if candidates, err := elections.Candidates(t.Context(), "new"); err != nil || len(candidates) > 0 {
		t.Errorf("the refused call registered %v, %v; want no candidate", candidates, err)
	}
	if held, err := elections.Elect(t.Context(), "n", a); err != nil || held.Holder != a || held.Term != first.Term {
		t.Errorf("without the second name: %+v, %v; want %+v", held, err, first)
	}
}

// inTx runs do in a transaction that is rolled back.
func inTx(t *testing.T, db *sql.DB, do func(tx *sql.Tx)) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	do(tx)
}
