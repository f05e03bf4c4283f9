package leaderhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/leaderhttp"
	"github.com/exactly-one/tenure/tenuretest"
)

// patience bounds every wait of a test.
const patience = testkit.Patience

var billing = tenure.NamedRole("billing")

// world is a database in memory with nodes that serve HTTP.
type world struct {
	*testing.T
	db *tenuretest.Database
}

func newWorld(t *testing.T) *world { return &world{t, tenuretest.NewDatabase()} }

// service is a node with its server.
type service struct {
	election *tenure.Election
	router   *leaderhttp.Router
	server   *httptest.Server
	handled  atomic.Int64
}

// echo answers with the name of the node, the term and the body.
func (s *service) echo(w http.ResponseWriter, req *http.Request) {
	s.handled.Add(1)
	body, _ := io.ReadAll(req.Body)
	term := leaderhttp.Term(req.Context())
	_, _ = io.WriteString(w, s.election.Node().Name()+" "+strconv.FormatInt(term.Number(), 10)+" "+string(body))
}

// serve starts a node whose server forwards what it must not handle.
func (w *world) serve(name string, config leaderhttp.Config, handler http.HandlerFunc) *service {
	w.Helper()
	s := &service{}
	mux := http.NewServeMux()
	s.server = httptest.NewServer(mux)
	w.Cleanup(s.server.Close)
	port := s.server.Listener.Addr().(*net.TCPAddr).Port
	s.election = w.election(name, tenure.Description{Address: "127.0.0.1", HTTPPort: port, Labels: map[string]string{"zone": name}})
	config.Logger = slog.New(slog.DiscardHandler)
	router, err := leaderhttp.New(w.Context(), s.election, config)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(router.Close)
	s.router = router
	if handler == nil {
		handler = s.echo
	}
	mux.Handle("/", router.ForwardToLeader(handler))
	mux.Handle("/only", router.LeaderOnly(handler))
	mux.HandleFunc("GET /healthz", router.Healthz)
	mux.HandleFunc("GET /readyz", router.Readyz)
	mux.HandleFunc("GET /leader", router.Leader)
	return s
}

// election opens a node, which does not campaign yet.
func (w *world) election(name string, description tenure.Description) *tenure.Election {
	w.Helper()
	node, err := tenure.Open(w.Context(), w.db, tenure.Config{Name: name, Description: description, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = node.Close(ctx)
	})
	election, err := node.Election(billing)
	if err != nil {
		w.Fatal(err)
	}
	return election
}

func (w *world) start(s *service) {
	w.Helper()
	if err := s.election.Start(context.WithoutCancel(w.Context())); err != nil {
		w.Fatal(err)
	}
}

// lead starts the candidacy of a service and waits until it leads.
func (w *world) lead(s *service) *tenure.Term {
	w.Helper()
	w.start(s)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	term, err := s.election.WaitForLeadership(ctx)
	if err != nil {
		w.Fatal(err)
	}
	return term
}

// reply is an answer with its body.
type reply struct {
	*http.Response
	body string
}

func (w *world) do(method, url, body string, header ...string) reply {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return reply{response, string(content)}
}

// code returns the code of an error.
func (r reply) code() string {
	var record struct {
		Error struct{ Code string }
	}
	_ = json.Unmarshal([]byte(r.body), &record)
	return record.Error.Code
}

// newServer serves a handler and returns its URL.
func newServer(t *testing.T, handler http.Handler) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
