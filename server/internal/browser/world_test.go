package browser

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/dashboard"
)

// world is an installation with a dashboard.
type world struct {
	*postgrestest.Installation
	pool    *pgxpool.Pool
	backend *postgres.Backend
	config  dashboard.Config
	board   atomic.Pointer[dashboard.Dashboard]
	web     *httptest.Server
	down    atomic.Bool // nothing is answered
	user    string      // whom something before the dashboard knows
	schema  string
	url     string // with / at its end

	replicas []*tenure.Node // the oldest first
}

// emptyPage is the path of a page with next to nothing, to compare with.
const emptyPage = "empty"

// newWorld makes an installation, has prepare fill it, and serves a dashboard.
func newWorld(t *testing.T, config dashboard.Config, prepare func(*world)) *world {
	t.Helper()
	pgtest.Long(t)
	return newWorldOn(t, postgrestest.New(t, "all"), config, prepare)
}

// newWorldOn is newWorld with an installation that exists.
func newWorldOn(t *testing.T, i *postgrestest.Installation, config dashboard.Config, prepare func(*world)) *world {
	t.Helper()
	w := &world{Installation: i, pool: i.Pool, schema: i.Schema, backend: i.Backend}
	if prepare != nil {
		prepare(w)
	}
	config.Backend, config.Database = w.backend, w.pool
	config.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	w.config = config
	w.restart()
	w.web = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.down.Load() {
			http.Error(out, "down", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == "/"+emptyPage {
			out.Header().Set("Content-Type", "text/html")
			fmt.Fprint(out, `<!doctype html><html lang="en"><title>Empty</title><link rel="icon" href="data:,"><p>Empty`)
			return
		}
		if w.user != "" {
			r = r.WithContext(dashboard.WithUser(r.Context(), w.user))
		}
		w.board.Load().ServeHTTP(out, r)
	}))
	t.Cleanup(func() {
		w.board.Load().Close() // ends the streams
		w.web.CloseClientConnections()
		w.web.Close()
	})
	w.url = w.web.URL + "/"
	return w
}

// restart serves another dashboard, which knows nothing of the one before.
func (w *world) restart() {
	w.Helper()
	board, err := dashboard.New(w.config)
	if err != nil {
		w.Fatal(err)
	}
	if before := w.board.Swap(board); before != nil {
		before.Close()
	}
}

func (w *world) exec(sql string, args ...any) { w.Helper(); w.Exec(sql, args...) }

// node opens a node that closes with the test.
func (w *world) node(backend tenure.Backend, name string, config tenure.Config) *tenure.Node {
	w.Helper()
	config.Name, config.Logger = name, slog.New(slog.DiscardHandler)
	node, err := tenure.Open(w.Context(), backend, config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = node.Close(ctx) // a test may have cut it off
	})
	return node
}

// campaign makes a node campaign for roles until the test ends.
func (w *world) campaign(node *tenure.Node, roles ...string) {
	w.Helper()
	for _, role := range roles {
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			w.Fatal(err)
		}
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(w.Context())
		go func() {
			defer close(done)
			_ = election.Run(ctx, func(ctx context.Context, _ *tenure.Term) error { // it ends with the test
				<-ctx.Done()
				return nil
			})
		}()
		w.Cleanup(func() { cancel(); <-done })
	}
}

// leads waits until a node leads a role.
func (w *world) leads(node *tenure.Node, role string) {
	w.Helper()
	w.AwaitLeader(role, node.ID())
}
