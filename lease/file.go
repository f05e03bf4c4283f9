package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/exactly-one/tenure"
)

// file is the file that a session or a store on SQLite writes to, as it was found
// at its path. Connections keep a file that was removed or replaced, and those
// that are opened later have another: each would elect a leader.
type file struct {
	path string // empty for a database in memory
	info os.FileInfo
}

// findFile looks at the file that is now at the path of a connection's.
func findFile(ctx context.Context, conn *sql.Conn) (*file, error) {
	const query = "SELECT coalesce(max(file), '') FROM pragma_database_list WHERE name = 'main'"
	f := &file{}
	if err := conn.QueryRowContext(ctx, query).Scan(&f.path); err != nil || f.path == "" {
		return f, err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		discard(conn)
		return nil, errReplaced(f.path, err)
	}
	f.info = info
	return f, nil
}

// check returns an error unless the same file is still at its path.
func (f *file) check() error {
	if f == nil || f.path == "" {
		return nil
	}
	switch info, err := os.Stat(f.path); {
	case err != nil:
		return errReplaced(f.path, err)
	case !os.SameFile(f.info, info):
		return errReplaced(f.path, nil)
	}
	return nil
}

func errReplaced(path string, cause error) error {
	err := fmt.Errorf("%w: the file %s was removed or replaced while it was open", tenure.ErrSuperseded, path)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// probeName is what a connection calls the file at the path beside its own.
const probeName = "tenure_path"

// checkThrough is check, and proves beyond it that the file of a connection is the
// one at the path, with the log and the index beside it: it opens the path once
// more and looks there for what the connection has just committed. A connection
// of another file is not used again.
func (f *file) checkThrough(ctx context.Context, conn *sql.Conn, probe string, args ...any) error {
	if f == nil || f.path == "" {
		return nil
	}
	err := f.check()
	if err == nil {
		err = f.lookThrough(ctx, conn, probe, args...)
	}
	if errors.Is(err, tenure.ErrSuperseded) {
		discard(conn)
	}
	return err
}

func (f *file) lookThrough(ctx context.Context, conn *sql.Conn, probe string, args ...any) error {
	attach := func() error { return exec(ctx, conn, "ATTACH DATABASE ? AS "+probeName, f.path) }
	if err := SQLite.whileLocked(ctx, attach); err != nil {
		return err
	}
	same := 0
	err := SQLite.whileLocked(ctx, func() error {
		return forEach(ctx, conn, probe, func(rows *sql.Rows) error { return rows.Scan(&same) }, args...)
	})
	afterwards(ctx, conn, "DETACH DATABASE "+probeName)
	if err == nil && same == 0 || slices.Contains(anotherFile, sqliteCode(err)) {
		return errReplaced(f.path, err)
	}
	return err
}

// anotherFile are the codes of SQLite's answers when the path leads to something
// else: no such table, a log that is shorter than its index says, a file or a log
// that makes no sense.
var anotherFile = []int{1, inputOutput, 11, 26}

// inputOutput is the code for a file that cannot be read or written. All
// connections of a process share what they know of a file, so that it may be
// right again as soon as the last of them is closed.
const inputOutput = 10

// discardBroken makes a pool close a connection on which a file could not be read
// or written.
func discardBroken(conn *sql.Conn, err error) {
	if sqliteCode(err) == inputOutput {
		discard(conn)
	}
}
