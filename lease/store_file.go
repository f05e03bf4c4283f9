package lease

import (
	"context"
	"database/sql"
	"reflect"
	"sync"
)

// storeFiles knows which file of SQLite each connection of a store has: that at
// the path when the store first wrote through the connection.
type storeFiles struct {
	mu    sync.Mutex
	files map[any]*file // by the driver's connection
}

// mostFiles bounds what is remembered of connections that may be closed by now.
const mostFiles = 256

// check returns an error unless the file of a connection that has just been
// written to is still the one at its path. What was written to another is for
// nobody.
func (f *storeFiles) check(ctx context.Context, conn *sql.Conn) error {
	var key any
	if err := conn.Raw(func(driverConn any) error { key = driverConn; return nil }); err != nil {
		return err
	}
	if !reflect.TypeOf(key).Comparable() {
		return nil // a driver whose connections cannot be told apart
	}
	f.mu.Lock()
	known := f.files[key]
	f.mu.Unlock()
	if known == nil {
		found, err := findFile(ctx, conn)
		if err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.files == nil || len(f.files) >= mostFiles {
			f.files = map[any]*file{}
		}
		f.files[key] = found
		return nil
	}
	err := known.check()
	if err != nil {
		f.mu.Lock()
		delete(f.files, key)
		f.mu.Unlock()
		discard(conn)
	}
	return err
}
