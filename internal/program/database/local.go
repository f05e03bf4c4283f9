package database

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
)

// Local returns the database of --local: an SQLite file in the user's state
// directory, for the processes of this user on this machine. Opening it makes
// its directory, for the user alone.
func Local() (*Target, error) {
	state, err := stateDirectory(runtime.GOOS)
	if err != nil {
		return nil, invalid("there is no place for the local database: %w", err)
	}
	target := sqliteFile(filepath.Join(state, "tenure", "local.db"))
	open := target.open
	target.open = func(ctx context.Context) (*sql.DB, error) {
		if err := os.MkdirAll(filepath.Join(state, "tenure"), 0o700); err != nil {
			return nil, invalid("the directory of the local database: %w", err)
		}
		return open(ctx)
	}
	return target, nil
}

// stateDirectory is a system's directory for the state of programs, for a user on this
// machine alone. A directory shared by the user's machines would let two of them share a
// file meant for one.
func stateDirectory(system string) (string, error) {
	switch system {
	case "windows":
		return os.UserCacheDir() // %LocalAppData%
	case "darwin":
		return os.UserConfigDir() // ~/Library/Application Support
	}
	// Relative paths are to be ignored: XDG Base Directory Specification.
	if directory := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(directory) {
		return directory, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}
