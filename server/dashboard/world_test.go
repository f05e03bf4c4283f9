package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/postgres"
)

// world is an installation with a dashboard, and counts the dashboard's statements to
// the database.
type world struct {
	*postgrestest.Installation
	pool       *pgxpool.Pool
	backend    *postgres.Backend
	nodes      *postgres.Backend // of the nodes, which are not counted
	board      *Dashboard
	url        string
	schema     string
	statements atomic.Int64

	timelineReads atomic.Int64
	sampleReads   atomic.Int64 // statements on the stored samples
}

// History implements historyReader, and counts the reads of timelines.
func (w *world) History(ctx context.Context, query history.Query) ([]history.Term, error) {
	w.timelineReads.Add(1)
	return w.backend.History(ctx, query)
}

// TraceQueryStart implements pgx.QueryTracer.
func (w *world) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	w.statements.Add(1)
	if strings.Contains(data.SQL, `"tenure_samples"`) {
		w.sampleReads.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*world) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func newWorld(t *testing.T, config Config, prepare ...func(*world)) *world {
	t.Helper()
	i := postgrestest.New(t, "processors", "schedules")
	w := &world{Installation: i, nodes: i.Backend, schema: i.Schema}
	connect := func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
		config.Tracer = w
		return pgx.ConnectConfig(ctx, config)
	}
	w.backend = w.NewBackend(func(c *postgres.Config) { c.Connect = connect })
	poolConfig, err := pgxpool.ParseConfig(i.Server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	poolConfig.ConnConfig.Tracer = w
	if w.pool, err = pgxpool.NewWithConfig(t.Context(), poolConfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	for _, fill := range prepare {
		fill(w)
	}
	config.Backend, config.Database = w.backend, w.pool
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	if w.board, err = New(config); err != nil {
		t.Fatal(err)
	}
	w.board.timelines.backend = w
	web := httptest.NewServer(w.board)
	w.url = web.URL
	t.Cleanup(func() {
		w.board.Close()
		web.CloseClientConnections()
		web.Close()
	})
	return w
}

func (w *world) exec(sql string, args ...any) { w.Helper(); w.Exec(sql, args...) }

// node opens a node that campaigns for roles until the test ends, or stop is called.
func (w *world) node(name string, roles ...string) (node *tenure.Node, stop func()) {
	w.Helper()
	node = w.Node(name, tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	postgrestest.Campaign(w, node, roles...)
	return node, func() { w.Helper(); postgrestest.Close(w, node) }
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
	Cookies    []*http.Cookie
}

// request sends a request and returns the answer with its body.
func (w *world) request(method, path, body string, headers ...string) (reply, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return w.send(r)
}

func (w *world) send(r *http.Request) (reply, string) {
	w.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	response, err := client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return reply{response.StatusCode, response.Status, response.Header, response.Cookies()}, string(text)
}

// get reads an answer of the API.
func get[R any](w *world, path string, headers ...string) R {
	w.Helper()
	response, text := w.request(http.MethodGet, path, "", headers...)
	var record R
	if err := json.Unmarshal([]byte(text), &record); err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s %s (%v)", path, response.Status, text, err)
	}
	return record
}

func (w *world) await(what string, condition func() bool) { w.Helper(); w.Await(what, condition) }

// role reads a role; there may be none yet.
func (w *world) role(name string) roleRecord {
	w.Helper()
	w.board.audience.attend(w.Context()) // as a request does
	record, _ := w.board.snapshot.role(name)
	return record
}

// led waits until a node is shown as the leader of a role.
func (w *world) led(role, node string) roleRecord {
	w.Helper()
	w.await(node+" is shown to lead "+role, func() bool {
		r := w.role(role)
		return r.State == led && r.NodeName == node
	})
	return w.role(role)
}

// sse is an event of a stream.
type sse struct{ id, kind, data string }

// follow opens a stream, which is closed with the test or by close.
func (w *world) follow(last string) (next func() sse, end func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/api/stream", http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	transport := &http.Transport{}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("%v %v", response, err)
	}
	end = func() {
		cancel()
		_ = response.Body.Close() // it was cut
		transport.CloseIdleConnections()
	}
	w.Cleanup(end)
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20)
	return func() (e sse) {
		w.Helper()
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					return e
				}
			}
		}
		w.Fatalf("the stream ended: %v", lines.Err())
		return e
	}, end
}

// escaped is a name in the form for a query.
func escaped(name string) string { return url.QueryEscape(name) }

// object is a body.
func object(pairs map[string]any) string {
	var text bytes.Buffer
	_ = json.NewEncoder(&text).Encode(pairs)
	return text.String()
}

// discarded is a log that is not read.
func discarded() *slog.Logger { return slog.New(slog.DiscardHandler) }
