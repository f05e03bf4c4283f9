package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// open opens a database that is closed with the test.
func open(t testing.TB, target *Target) *sql.DB {
	t.Helper()
	db, err := target.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestSQLiteConnectionsHaveTheSettings(t *testing.T) {
	t.Parallel()
	db := open(t, parse(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db")))
	var conns []*sql.Conn
	for range 3 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000"} {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s: got %q, %v; want %q", pragma, got, err, want)
			}
		}
	}

	// A transaction locks for writing when it begins.
	first, err := conns[0].BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback()
	if _, err := conns[1].ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	if second, err := conns[1].BeginTx(t.Context(), nil); err == nil {
		_ = second.Rollback()
		t.Error("two transactions run at the same time")
	}
}

func TestSQLitePathsAreResolved(t *testing.T) {
	directory := t.TempDir()
	t.Chdir(directory)
	for dsn, name := range map[string]string{
		"sqlite:plain.db":                             "plain.db",
		"sqlite:./dotted.db":                          "dotted.db",
		"sqlite://" + directory + "/absolute.db":      "absolute.db",
		"sqlite:" + directory + "/opaque.db":          "opaque.db",
		"SQLITE:upper.db":                             "upper.db",
		"sqlite:a%3Fb%23c%25d é.db":                   "a?b#c%d é.db",
		"sqlite:plain%26_pragma=journal_mode(OFF).db": "plain&_pragma=journal_mode(OFF).db",
	} {
		db := open(t, parse(t, dsn))
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE content (id int)"); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
		info, err := os.Stat(filepath.Join(directory, name))
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the new file has mode %v", dsn, info.Mode())
		}
		if info, err := os.Stat(filepath.Join(directory, name+"-wal")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the file beside it: %v, %v", dsn, info, err)
		}
	}
}

// The current directory at the time of Parse counts.
func TestSQLiteRelativePathIsReadOnce(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Chdir(first)
	target := parse(t, "sqlite:x.db")
	t.Chdir(second)
	open(t, target)
	if _, err := os.Stat(filepath.Join(first, "x.db")); err != nil {
		t.Error(err)
	}
}

func TestSQLiteKeepsPermissionsOfFilesThatAreThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := errors.Join(os.WriteFile(path, nil, 0o640), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	open(t, parse(t, "sqlite:"+path))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
}

func TestSQLiteOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	text := filepath.Join(directory, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		directory:                             "is a directory: name a file in it",
		"/":                                   "is a directory",
		filepath.Join(directory, "none", "x"): "the directory " + filepath.Join(directory, "none") + " does not exist",
		filepath.Join(text, "x"):              "not a directory",
		text:                                  "is not a database of SQLite",
		"/proc/x.db":                          "does not exist", // whose files no user can create
		filepath.Join(directory, strings.Repeat("x", 300)): "file name too long",
	} {
		db, err := parse(t, "sqlite:"+path).Open(t.Context())
		if err == nil {
			_ = db.Close()
		}
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v; want %q on one line", path, err, want)
		}
	}
}

// Root may read and write what its permissions forbid, so what the system says to
// others is handed in.
func TestSQLiteExplainsPermissions(t *testing.T) {
	t.Parallel()
	for code, want := range map[syscall.Errno]string{
		syscall.EACCES: "/d/x may not be read and written, or made, by this user",
		syscall.EPERM:  "/d/x may not be read and written, or made, by this user",
		syscall.EROFS:  "/d/x is on a file system that is read-only",
	} {
		err := explainFile("/d/x", &fs.PathError{Op: "open", Path: "/d/x", Err: code})
		if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v", code, err)
		}
		if errors.Is(err, dberr.ErrReadOnly) != (code == syscall.EROFS) {
			t.Errorf("%v: got %v", code, err)
		}
	}
}

// Several processes that meet at a new file all get in.
func TestSQLiteOpensAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		target := parse(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
		var all sync.WaitGroup
		failures := make(chan error, 8)
		for range cap(failures) {
			all.Go(func() { failures <- insertOne(t.Context(), target) })
		}
		all.Wait()
		close(failures)
		for err := range failures {
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
	}
}

func insertOne(ctx context.Context, target *Target) error {
	db, err := target.Open(ctx)
	if err != nil {
		return err
	}
	for _, statement := range []string{"CREATE TABLE IF NOT EXISTS content (id int)", "INSERT INTO content VALUES (1)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", statement, err), db.Close())
		}
	}
	return db.Close()
}

// A file that another program keeps locked is given up after a while.
func TestSQLiteLockedFileIsGivenUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	holder, err := sql.Open("sqlite", path) // not in WAL mode
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	conn, err := holder.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{"CREATE TABLE content (id int)", "BEGIN EXCLUSIVE"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	db, err := parse(t, "sqlite:"+path).Open(t.Context())
	if err == nil {
		_ = db.Close()
	}
	if took := time.Since(begun); !errors.Is(err, dberr.ErrBusy) || took < busyTimeout/2 || took > 3*busyTimeout {
		t.Errorf("got %v after %v", err, took)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	open(t, parse(t, "sqlite:"+path))
}
