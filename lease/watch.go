package lease

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// watch tells whether it is worth while to look for news. On SQLite that costs
// less than to look: a connection that is kept for it knows whether another has
// written to the file, since when only the passing of time can bring news. It
// belongs to one goroutine.
type watch struct {
	backend *Backend
	now     func() time.Duration // on a monotonic clock

	conn       *sql.Conn
	restore    func()
	version    int64         // of the file, as this connection counts
	nextExpiry time.Duration // when a lease runs out that is not renewed
}

// unchanged reports whether there can be no news since the last look. If it reports
// false, it does so until a look has succeeded.
func (w *watch) unchanged(ctx context.Context) bool {
	before := w.version
	if w.readVersion(ctx) && w.version == before && w.now() < w.nextExpiry {
		return true
	}
	w.nextExpiry = 0
	return false
}

// readVersion asks for the version of the file, and reports whether the one before came
// from the same connection.
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

// fewConnections is how many connections of a pool are too few to keep one.
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

// recordPoll notes what a look has found that was begun at a time.
func (w *watch) recordPoll(found pollResult, begun time.Duration) {
	w.nextExpiry = math.MaxInt64
	if found.nextExpiry.Valid {
		w.nextExpiry = begun + microseconds(found.nextExpiry.Int64)
	}
}

// close gives the connection back.
func (w *watch) close() {
	if w.conn != nil {
		w.restore()
		_ = w.conn.Close() // of what it was used for, nothing is lost
		w.conn = nil
	}
}
