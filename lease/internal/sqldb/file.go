package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/exactly-one/tenure"
)

// File identifies the file of a session or a store on SQLite. When a file is removed or
// replaced, open connections keep the old file and new ones open another, and each file
// would have its own leader. A nil File passes every check.
type File struct {
	path string // empty for a database in memory
	info os.FileInfo
}

// FindFile identifies the file now at the path of a connection's database.
func FindFile(ctx context.Context, conn *sql.Conn) (*File, error) {
	path, err := pathOf(ctx, conn)
	f := &File{path: path}
	if err != nil || path == "" {
		return f, err
	}
	info, err := os.Stat(path)
	if err != nil {
		Discard(conn)
		return nil, errReplaced(path, err)
	}
	f.info = info
	return f, nil
}

// pathOf returns the path of a connection's database, without symbolic links, or an
// empty one for a database in memory. It begins no read transaction: after one, SQLite
// would not wait for another writer in the same transaction.
func pathOf(ctx context.Context, on Querier) (path string, err error) {
	err = ForEach(ctx, on, "PRAGMA database_list", func(rows *sql.Rows) error {
		var (
			number     any
			name, file sql.NullString
		)
		if err := rows.Scan(&number, &name, &file); err != nil {
			return err
		}
		if name.String == "main" {
			path = file.String
		}
		return nil
	})
	return path, err
}

// Check returns an error unless the same file is still at its path, and has no other
// name.
func (f *File) Check() error {
	if f == nil || f.path == "" {
		return nil
	}
	switch info, err := os.Stat(f.path); {
	case err != nil:
		return errReplaced(f.path, err)
	case !os.SameFile(f.info, info):
		return errReplaced(f.path, nil)
	default:
		return checkNames(f.path, info)
	}
}

func errReplaced(path string, cause error) error {
	err := fmt.Errorf("%w: the file %s was removed or replaced while it was open", tenure.ErrSuperseded, path)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// PathSchema is the name for the file attached by Verify.
const PathSchema = "tenure_path"

// Verify is Check. It also proves the file of a connection to be the file at the path,
// including the log and the index beside it. It attaches the path a second time as
// PathSchema and runs probe. probe must count the rows there just committed by the
// connection. A connection to another file is discarded.
func (f *File) Verify(ctx context.Context, conn *sql.Conn, probe string, args ...any) error {
	if f == nil || f.path == "" {
		return nil
	}
	err := f.Check()
	if err == nil {
		err = f.verifyAttached(ctx, conn, probe, args...)
	}
	if errors.Is(err, tenure.ErrSuperseded) {
		Discard(conn)
	}
	return err
}

func (f *File) verifyAttached(ctx context.Context, conn *sql.Conn, probe string, args ...any) error {
	attach := func() error { return Exec(ctx, conn, "ATTACH DATABASE ? AS "+PathSchema, f.path) }
	if err := SQLite.retryWhileLocked(ctx, attach); err != nil {
		if slices.Contains(unreadable, sqliteCode(err)) { // it reads the log beside the path
			return errReplaced(f.path, err)
		}
		return err
	}
	same := 0
	err := SQLite.retryWhileLocked(ctx, func() error {
		return ForEach(ctx, conn, probe, func(rows *sql.Rows) error { return rows.Scan(&same) }, args...)
	})
	cleanUp(ctx, conn, "DETACH DATABASE "+PathSchema)
	if err == nil && same == 0 || sqliteCode(err) == noTable || slices.Contains(unreadable, sqliteCode(err)) {
		return errReplaced(f.path, err)
	}
	return err
}

// noTable is SQLite's code for a statement on a missing table.
const noTable = 1

// unreadable lists SQLite's codes when the path leads to another file: a log shorter
// than its index says, a corrupt file or log.
var unreadable = []int{ioError, 11, 26}

// ioError is the code for a failed read or write of a file. All connections of a process
// share their state of a file, so the fault can disappear when the last of them is closed.
const ioError = 10

// discardBroken discards a connection after a failed read or write of its file, or if its
// file, log or index was removed.
func discardBroken(conn *sql.Conn, err error) {
	if sqliteCode(err) == ioError || errors.Is(err, tenure.ErrSuperseded) {
		Discard(conn)
	}
}
