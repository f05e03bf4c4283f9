package lease

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// watch makes most polls unnecessary on SQLite. It keeps a connection to learn whether
// another connection has written to the file. Without a write, only the expiry of a lease
// can change the result of a poll. One goroutine uses a watch.
type watch struct {
	backend *Backend
	now     func() time.Duration // on a monotonic clock

	conn       *sql.Conn
	restore    func()
	version    int64         // PRAGMA data_version, which each connection counts for itself
	nextExpiry time.Duration // when the next lease expires unless it is renewed
}

// unchanged reports whether nothing can have changed since the last poll. After false
// it returns false until a poll has succeeded.
func (w *watch) unchanged(ctx context.Context) bool {
	before := w.version
	if w.readVersion(ctx) && w.version == before && w.now() < w.nextExpiry {
		return true
	}
	w.nextExpiry = 0
	return false
}

// readVersion reads the version of the file. It reports whether the version before came
// from the same connection: only then can the two be compared.
func (w *watch) readVersion(ctx context.Context) (same bool) {
	same = w.conn != nil
	if !same && !w.connect(ctx) {
		return false
	}
	if err := w.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&w.version); err != nil {
		w.close()
		return false
	}
	return same
}

// fewConnections is the size of a pool too small to keep a connection.
const fewConnections = 2

func (w *watch) connect(ctx context.Context) bool {
	if limit := w.backend.db.Stats().MaxOpenConnections; w.backend.db.Dialect != sqldb.SQLite || limit > 0 && limit <= fewConnections {
		return false
	}
	conn, err := w.backend.db.Connect(ctx)
	if err != nil {
		return false
	}
	w.conn = conn
	if w.restore, err = sqldb.SQLite.Limit(ctx, conn, time.Second); err != nil {
		w.restore = func() {}
		w.close()
		return false
	}
	return true
}

// recordPoll records the result of a poll and its start time.
func (w *watch) recordPoll(found pollResult, begun time.Duration) {
	w.nextExpiry = math.MaxInt64
	if found.nextExpiry.Valid {
		w.nextExpiry = begun + microseconds(found.nextExpiry.Int64)
	}
}

// close returns the connection to the pool.
func (w *watch) close() {
	if w.conn != nil {
		w.restore()
		_ = w.conn.Close() // it wrote nothing, so an error loses nothing
		w.conn = nil
	}
}
