//go:build unix

package leaderhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/leaderhttp"
	"github.com/exactly-one/tenure/postgres"
)

// childVariable makes the test binary run as a node that serves HTTP.
const childVariable = "TENURE_LEADERHTTP_TEST_NODE"

// child is the configuration of such a node.
type child struct {
	DSN, Schema, Name string
	Candidate         bool
	Lease             time.Duration
}

func runChild(given string) int {
	var c child
	err := json.Unmarshal([]byte(given), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (c child) run(ctx context.Context) error {
	backend, err := postgres.New(c.DSN, postgres.Config{Schema: c.Schema})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, c.DSN)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	node, err := tenure.Open(ctx, backend, tenure.Config{
		Name: c.Name, Lease: c.Lease, Logger: logger, Description: tenure.Description{Address: "127.0.0.1", HTTPPort: port},
	})
	if err != nil {
		return err
	}
	election, err := node.Election(billing)
	if err != nil {
		return err
	}
	router, err := leaderhttp.New(ctx, election, leaderhttp.Config{Logger: logger})
	if err != nil {
		return err
	}
	if c.Candidate {
		if err := election.Start(ctx); err != nil {
			return err
		}
	}
	h := childHandler{c, pool}
	mux := http.NewServeMux()
	mux.Handle("POST /", router.ForwardToLeader(http.HandlerFunc(h.write)))
	mux.Handle("POST /only", router.LeaderOnly(http.HandlerFunc(h.write)))
	children.Send(children.Report{Kind: "ready", Sequence: int64(port)})
	go children.Watch(0, children.Leads(election.IsLeader))
	return http.Serve(listener, mux)
}

// childHandler records each request that it receives, and then writes it under the
// term of the request.
type childHandler struct {
	child
	pool *pgxpool.Pool
}

// write handles a request whose body is its number. A request to /held is written
// only when the table go has a row, also if its context has ended by then.
func (h childHandler) write(w http.ResponseWriter, req *http.Request) {
	ctx := context.WithoutCancel(req.Context())
	term := leaderhttp.Term(ctx)
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number, _ := strconv.Atoi(string(body))
	table := func(name string) string { return pgx.Identifier{h.Schema, name}.Sanitize() }
	if _, err = h.pool.Exec(ctx, "INSERT INTO "+table("received")+" VALUES ($1, $2, $3, $4)", number, h.Name, term.Number(), term.Valid()); err == nil && req.URL.Path == "/held" {
		children.Send(children.Report{Kind: "held", Term: term.Number()})
		for released := false; err == nil && !released; {
			err = h.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+table("go")+")").Scan(&released)
		}
	}
	if err == nil {
		err = postgres.InTx(ctx, h.pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+table("written")+" VALUES ($1, $2)", number, term.Number())
			return err
		})
	}
	if req.URL.Path == "/held" {
		children.Send(children.Report{Kind: "tried", Term: term.Number(), Error: fmt.Sprint(err)})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, h.Name)
}
