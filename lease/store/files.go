package store

import (
	"context"
	"database/sql"
	"reflect"
	"sync"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// connFiles remembers the SQLite file of each connection of a store: the file at the path
// when the store first wrote through the connection.
type connFiles struct {
	mu    sync.Mutex
	files map[any]*sqldb.File // by the driver's connection; guarded by mu
}

// maxFiles bounds the map. It can contain closed connections.
const maxFiles = 256

// check returns an error unless the file of a connection, after a write, is still the file
// at its path. Other processes do not see writes to another file.
func (f *connFiles) check(ctx context.Context, conn *sql.Conn) error {
	var key any
	if err := conn.Raw(func(driverConn any) error { key = driverConn; return nil }); err != nil {
		return err
	}
	if !reflect.TypeOf(key).Comparable() {
		return nil // connections of this driver cannot be map keys
	}
	f.mu.Lock()
	known := f.files[key]
	f.mu.Unlock()
	if known == nil {
		found, err := sqldb.FindFile(ctx, conn)
		if err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.files == nil || len(f.files) >= maxFiles {
			f.files = map[any]*sqldb.File{}
		}
		f.files[key] = found
		return nil
	}
	err := known.Check()
	if err != nil {
		f.mu.Lock()
		delete(f.files, key)
		f.mu.Unlock()
		sqldb.Discard(conn)
	}
	return err
}
