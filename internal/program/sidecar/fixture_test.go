package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/tenuretest"
)

// database is one in memory that also knows its nodes, as the real ones do.
type database struct {
	*tenuretest.Database

	mu    sync.Mutex
	nodes []tenure.NodeInfo
	fail  error  // what Nodes and Leaders return
	asked int    // calls of Leaders
	offer func() // called once, before the next request is recorded; nil for nothing
}

// Request implements tenure.Backend.
func (d *database) Request(ctx context.Context, request tenure.Request) error {
	d.mu.Lock()
	offer := d.offer
	d.offer = nil
	d.mu.Unlock()
	if offer != nil {
		offer()
	}
	return d.Database.Request(ctx, request)
}

func newDatabase() *database { return &database{Database: tenuretest.NewDatabase()} }

func (d *database) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes = append(d.nodes, opening.Node)
	return d.Database.Open(ctx, opening)
}

func (d *database) Nodes(context.Context) ([]tenure.NodeInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.nodes, d.fail
}

func (d *database) Leaders(ctx context.Context, roles ...string) ([]tenure.Leader, error) {
	d.mu.Lock()
	d.asked++
	fail := d.fail
	d.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	return d.Database.Leaders(ctx, roles...)
}

func (d *database) failWith(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

func (d *database) questions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

var silent = slog.New(slog.DiscardHandler)

// newHandler returns a handler that is closed with the test.
func newHandler(t *testing.T, config Config) *Handler {
	t.Helper()
	if config.Logger == nil {
		config.Logger = silent
	}
	config.Version = "v1.2.3"
	h := New(config)
	t.Cleanup(h.Close)
	return h
}

// campaign opens a node that campaigns for roles. The node's events go to the handler,
// which may be nil.
func campaign(t *testing.T, db tenure.Backend, name string, h *Handler, roles ...string) *tenure.Node {
	t.Helper()
	return campaignWith(t, db, tenure.Config{Name: name}, h, roles...)
}

// campaignWith is campaign with a configuration of the node.
func campaignWith(t *testing.T, db tenure.Backend, config tenure.Config, h *Handler, roles ...string) *tenure.Node {
	t.Helper()
	config.Logger = silent
	node, err := tenure.Open(t.Context(), db, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if h != nil {
		h.Attach(node)
	}
	for _, role := range roles {
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			t.Fatal(err)
		}
		election.OnEvent(func(event tenure.Event) {
			if h != nil {
				h.Publish(record.NewEvent(node, event))
			}
		})
		if err := election.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return node
}

// elected waits until the node leads a role, with Start driving the election.
func elected(t *testing.T, node *tenure.Node, role string) *tenure.Election {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, election := range node.Elections() {
		if election.Role().Name() == role {
			if _, err := election.WaitForLeadership(ctx); err != nil {
				t.Fatal(err)
			}
			return election
		}
	}
	t.Fatalf("the node does not campaign for %s", role)
	return nil
}

// reply is what a handler answered.
type reply struct {
	status int
	header http.Header
	body   string
}

// call asks a handler, and checks the answer against the description.
func call(t *testing.T, h http.Handler, method, target, body string, header ...string) reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost"
	if body == "" {
		r.Body = http.NoBody
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return serve(t, h, r)
}

func serve(t *testing.T, h http.Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	seen := reply{w.Code, w.Header(), w.Body.String()}
	checkDescribed(t, r, seen)
	return seen
}

// want fails the test unless the answer has a status.
func (r reply) want(t *testing.T, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("the status is %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// refused fails the test unless the answer is this error.
func (r reply) refused(t *testing.T, status int, code string) reply {
	t.Helper()
	r.want(t, status)
	found := decode[errorRecord](t, r.body).Error
	if found.Code != code || found.Message == "" {
		t.Fatalf("the error is %+v, want the code %s and a message", found, code)
	}
	return r
}

// decode reads one JSON value with no other fields than the type has.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("more than one value: %q", text)
	}
	return value
}

const secret = "0123456789abcdef-secret"

// writeFile writes a file of the test's own and returns its name.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newToken(t *testing.T) *Token {
	t.Helper()
	token, err := OpenToken(writeFile(t, "token", secret+"\n"), silent)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
