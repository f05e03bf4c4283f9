package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease"
)

// parseSQLite reads sqlite:PATH, where the path is relative to the current
// directory, and sqlite:///PATH.
func parseSQLite(dsn string, login Password) (*Target, error) {
	if login != nil {
		return nil, invalid("SQLite has no passwords: remove the password command")
	}
	path := strings.TrimPrefix(dsn, "sqlite:")
	path, options, hasOptions := strings.Cut(path, "?")
	if hasOptions {
		name, _, _ := strings.Cut(options, "=")
		return nil, invalid("unknown option %q for SQLite: none are known; a question mark in a file's name is written %%3F", name)
	}
	if authority, isURL := strings.CutPrefix(path, "//"); isURL {
		if !strings.HasPrefix(authority, "/") {
			return nil, invalid("two slashes after sqlite: would name a host: write sqlite:///absolute/path.db or sqlite:relative.db")
		}
		path = authority
	}
	path, err := url.PathUnescape(path)
	switch {
	case err != nil:
		return nil, invalid("the path of the SQLite file: %w; a percent sign in it is written %%25", err)
	case path == "":
		return nil, invalid("the connection string names no file: sqlite:relative.db or sqlite:///absolute/path.db")
	case filepath.Base(path) == ":memory:":
		return nil, invalid("an in-memory database cannot elect a leader: each connection would have a separate one; name a file")
	case strings.HasPrefix(path, "file:"):
		return nil, invalid("write the path itself, without file: before it")
	case strings.ContainsRune(path, 0):
		return nil, invalid("the path of the SQLite file contains a zero byte")
	}
	// The current directory may change before the file is opened.
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, invalid("the path of the SQLite file: %w", err)
	}
	return sqliteFile(path), nil
}

func sqliteFile(path string) *Target {
	return &Target{
		name: "SQLite, " + path, dialect: lease.SQLite,
		open: func(ctx context.Context) (*sql.DB, error) { return openSQLite(ctx, path) },
	}
}

// openSQLite opens a file, and makes it if it is missing.
func openSQLite(ctx context.Context, path string) (*sql.DB, error) {
	if err := makeFile(path); err != nil {
		return nil, explainFile(path, err)
	}
	connector, err := sqlite.NewConnector(sqliteURL(path))
	if err != nil {
		return nil, invalid("%w", err)
	}
	db := pooled(sql.OpenDB(connector))
	if err := firstConnection(ctx, db); err != nil {
		return nil, errors.Join(explainSQLite(path, err), db.Close())
	}
	return db, nil
}

// busyTimeout is how long a connection waits for locks of others where package
// lease does not say.
const busyTimeout = 5 * time.Second

// firstConnection sets the file to WAL mode. If several processes open a new file, SQLite
// allows the change to one of them and refuses it to the others without waiting: they try
// again. The mode is stored in the file.
func firstConnection(ctx context.Context, db *sql.DB) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(busyTimeout); ; {
		err := db.PingContext(ctx)
		if err == nil || primaryCode(err) != sqlite3.SQLITE_BUSY || time.Now().After(deadline) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// primaryCode returns the primary result code of SQLite in an error; 0 if there is none.
func primaryCode(err error) int {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return 0
	}
	return failure.Code() & 0xff
}

// makeFile creates a file unless it exists, and checks for write access. A new file is
// for its owner alone; SQLite gives the files beside it the same permissions.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// sqliteURL is the driver's connection string. In WAL mode readers and a writer do not
// wait for each other. A commit is on disk before it is acknowledged: a failing machine
// must not bring back an ended term. Transactions lock for writing immediately: after
// beginning with a read, a transaction cannot wait for another one when it must write.
func sqliteURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/...
	}
	address := url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: url.Values{
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)"},
		"_txlock": {"immediate"},
	}.Encode()}
	return address.String()
}

// explainFile says why a file cannot be used.
func explainFile(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return invalid("the directory %s does not exist: make it, or name another file", filepath.Dir(path))
	case errors.Is(err, syscall.EISDIR):
		return invalid("%s is a directory: name a file in it", path)
	case errors.Is(err, fs.ErrPermission):
		return invalid("%s may not be read and written, or made, by this user", path)
	case errors.Is(err, syscall.EROFS):
		return readOnly("%s is on a file system that is read-only", path)
	default:
		return invalid("the SQLite file: %w", err)
	}
}

// explainSQLite says why SQLite cannot use a file.
func explainSQLite(path string, err error) error {
	switch primaryCode(err) {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return invalid("%s is not a database of SQLite, or is damaged: %w", path, err)
	case sqlite3.SQLITE_CANTOPEN:
		return invalid("SQLite keeps files beside %s, but may not make them: this user must be allowed to write in %s: %w",
			path, filepath.Dir(path), err)
	case sqlite3.SQLITE_READONLY:
		return readOnly("%s or its directory may not be written by this user: %w", path, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("open %s: %w: %w", path, dberr.ErrBusy, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("open %s: %w: %w", path, dberr.ErrDiskFull, err)
	default:
		return fmt.Errorf("open %s: %w", path, err)
	}
}

// readOnly reports a file for the user to make writable.
func readOnly(format string, args ...any) error {
	return fmt.Errorf("%w: %w: %w", tenure.ErrInvalidConfig, dberr.ErrReadOnly, fmt.Errorf(format, args...))
}
