package dashboard

import (
	"log/slog"
	"net/http"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/feed"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/processor"
)

// Dashboard serves the page and its data. It is safe for concurrent use.
type Dashboard struct {
	config     Config
	log        *slog.Logger
	processors *processor.Admin // nil without a database
	schedules  *cron.Admin
	snapshot   *snapshot
	feed       *feed.Feed
	timelines  *timelines
	audit      *auditLog // nil without a database
	shared     *sharedReads
	lags       *lagSeries
	samples    *samples     // nil without a database
	graphs     *sharedReads // of the samples
	guard      *guard
	handler    http.Handler
	streams    *httpguard.Slots
	audience   *audience
	wake       chan struct{} // to read the database again

	stop func()
	done chan struct{}
}

// Close ends the streams and the reads of the database, and waits for the reads. Call it
// before the HTTP server's Shutdown, which would wait for the streams. Later requests get
// the last known state. It may be called more than once.
func (d *Dashboard) Close() { d.stop() }

// Protect returns a handler for other pages of the same server: it answers visitors with
// access to the dashboard, authenticated in the same ways.
func (d *Dashboard) Protect(next http.Handler) http.Handler { return d.guard.reading(next.ServeHTTP) }

// ServeHTTP implements [http.Handler].
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }
