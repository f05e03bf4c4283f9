package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/exactly-one/tenure"
)

// SQLite keeps its log and the index of its locks beside the name of a file. Under a
// second name the same inode has a second log and a second index, so each name could have
// a leader. Therefore no process may use a file with two names:
//
//   - A hard link counts in the inode, so the processes under all names see it.
//   - A mount of the file alone, such as a container's volume of one file, is visible only
//     in its mount namespace. A process refuses such a path, so only the path inside a
//     directory remains. Such mounts are detected on Linux only.
//
// SQLite itself resolves symbolic links. A lock on the inode is no alternative: when a
// process closes any descriptor of a file, it loses all POSIX locks of SQLite on the file.
// The checks therefore never open the file, except on Windows, which has no such locks.

// namesError reports a possible second name of a file.
type namesError struct{ path, reason, advice string }

func (e *namesError) Error() string {
	return fmt.Sprintf("%v: the file %s %s: SQLite keeps a log and locks beside each name, so each name could have a leader: %s",
		tenure.ErrRefused, e.path, e.reason, e.advice)
}

// Unwrap makes the error final for a new node and the end of a session.
func (e *namesError) Unwrap() []error { return []error{tenure.ErrRefused, tenure.ErrSuperseded} }

// checkNames returns an error if the file at a path has another name. A missing file
// has none.
func checkNames(path string, info os.FileInfo) error {
	links, err := countLinks(path, info)
	if err == nil && links > 1 {
		return &namesError{path, fmt.Sprintf("has %d names (hard links)", links), "remove the other names"}
	}
	mounted := false
	if err == nil {
		mounted, err = isMounted(path)
	}
	switch {
	case mounted:
		return &namesError{path, "is mounted alone", "mount its directory instead, such as a volume of the directory"}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// checkBeforeUse is CheckNames for a connection to a possibly locked file.
func checkBeforeUse(ctx context.Context, conn *sql.Conn) error {
	return SQLite.retryWhileLocked(ctx, func() error { return CheckNames(ctx, conn) })
}

// CheckNames returns an error if the file of a connection has another name, or if its log
// or index was removed: then each process has a log and an index, and they destroy the
// file. It does nothing for a database in memory.
func CheckNames(ctx context.Context, on Querier) error {
	path, err := pathOf(ctx, on)
	if err != nil || path == "" {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkRemains(path); err != nil {
		return err
	}
	return checkNames(path, info)
}
