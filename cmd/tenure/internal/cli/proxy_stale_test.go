package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// childFenced is the first word of a child that leads the role billing and writes the
// bodies of HTTP requests in transactions fenced with the term in which it received
// them. Its words are the host, the port, the connection string and the schema.
const childFenced = "fenced"

func fencedMain(host, port, dsn, schema string) error {
	ctx := context.Background()
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	db, err := postgres.New(dsn, postgres.Config{Schema: schema})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, db, tenure.Config{
		Name: host, Lease: 3 * time.Second, Description: tenure.Description{Address: host, HTTPPort: number},
	})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	if err := election.Start(ctx); err != nil {
		return err
	}
	return http.Serve(listener, fencedHandler{election, pool, schema})
}

// fencedHandler writes the body of a request. A request to /held is written when the
// table go has a row, and the attempt is printed.
type fencedHandler struct {
	election *tenure.Election
	pool     *pgxpool.Pool
	schema   string
}

func (h fencedHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx := context.WithoutCancel(req.Context())
	term := h.election.Term()
	if term == nil {
		http.Error(w, "not the leader", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(req.Body)
	held := req.URL.Path == "/held"
	if held && err == nil {
		fmt.Println("held")
		for released := false; err == nil && !released; {
			err = h.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+h.table("go")+")").Scan(&released)
		}
	}
	if err == nil {
		err = postgres.InTx(ctx, h.pool, term, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+h.table("written")+" VALUES ($1)", string(body))
			return err
		})
	}
	if held {
		fmt.Println("tried:", errors.Is(err, tenure.ErrFenced), err)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "written")
}

func (h fencedHandler) table(name string) string { return pgx.Identifier{h.schema, name}.Sanitize() }

// A leader is paused while it handles a request that came through the proxy. The next
// leader gets the following requests, and the fence refuses the write of the paused one
// when it resumes.
func TestProxiedWriteOfStaleLeaderIsFenced(t *testing.T) {
	t.Parallel()
	t.Run("TCP", func(t *testing.T) { t.Parallel(); testStaleWrite(t, false) })
	t.Run("HTTP", func(t *testing.T) { pgtest.Long(t); t.Parallel(); testStaleWrite(t, true) })
}

func testStaleWrite(t *testing.T, overHTTP bool) {
	place, port := newPlace(t), freePort(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	db := place.server.Conn(t)
	tables := fencedHandler{schema: place.schema}
	exec := func(sql string) {
		t.Helper()
		pgtest.Exec(t, db, sql)
	}
	exec("CREATE TABLE " + tables.table("go") + " (go bool); CREATE TABLE " + tables.table("written") + " (number text)")
	start := func(host string) *process {
		return launch(t, asChild, childFenced, host, strconv.Itoa(port), place.server.DSN(), place.schema)
	}
	args := []string{"--to-port", strconv.Itoa(port)}
	if overHTTP {
		args = []string{"--http"}
	}
	stale := start("127.0.0.1")
	stale.awaitLog("to=leader")
	_, address := place.startProxy(t, append(args, "--wait", "1m")...)
	post := func(path, number string) (int, error) {
		client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
		defer client.CloseIdleConnections()
		response, err := client.Post("http://"+address+path, "text/plain", strings.NewReader(number))
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		return response.StatusCode, nil
	}
	if status, err := post("/", "1"); status != http.StatusOK {
		t.Fatalf("first request: %d, %v", status, err)
	}
	standby := start("127.0.0.2")
	standby.awaitLog("to=follower")
	cut := make(chan int, 1)
	go func() { // exits when the request is answered or cut; the test waits
		status, _ := post("/held", "2")
		cut <- status
	}()
	if line, _ := stale.line(); line != "held" {
		t.Fatalf("the leader printed %q, want held", line)
	}
	stale.signal(sandbox.PauseSignal)
	standby.awaitLog("to=leader")
	if status := <-cut; status == http.StatusOK {
		t.Error("the request that the paused leader handles was answered")
	}
	if status, err := post("/", "3"); status != http.StatusOK {
		t.Errorf("a request while the old leader is paused: %d, %v; want 200 of the next leader", status, err)
	}
	exec("INSERT INTO " + tables.table("go") + " VALUES (true)")
	stale.signal(sandbox.ResumeSignal)
	if line, _ := stale.line(); !strings.HasPrefix(line, "tried: true") {
		t.Errorf("the write of the stale leader: %q, want it to be fenced", line)
	}
	var written string
	if err := db.QueryRow(t.Context(), "SELECT string_agg(number, ' ' ORDER BY number) FROM "+tables.table("written")).Scan(&written); err != nil || written != "1 3" {
		t.Errorf("written: %q, %v; want 1 and 3", written, err)
	}
}
