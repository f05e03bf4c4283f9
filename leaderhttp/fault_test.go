//go:build unix

package leaderhttp_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/leaderhttp"
)

// fleet is a set of nodes in separate processes, on one installation. The first
// one, front, only forwards.
type fleet struct {
	*testing.T
	server     *pgtest.Server
	schema     string
	lease      time.Duration
	pool       *pgxpool.Pool
	front      string // URL
	candidates map[string]*children.Child
	urls       []string // of the candidates, in the order of their names
}

func newFleet(t *testing.T, lease time.Duration, candidates ...string) *fleet {
	server := pgtest.Shared(t)
	f := &fleet{T: t, server: server, schema: server.Schema(t), lease: lease, pool: server.Pool(t), candidates: map[string]*children.Child{}}
	f.exec(`CREATE SCHEMA {schema}`)
	f.exec(`CREATE TABLE {schema}.received (number bigint, node text, term bigint, valid boolean)`)
	f.exec(`CREATE TABLE {schema}.written (number bigint, term bigint)`)
	f.exec(`CREATE TABLE {schema}.go (released boolean)`)
	_, f.front = f.spawn("front", false)
	for _, name := range candidates {
		c, url := f.spawn(name, true)
		f.candidates[name], f.urls = c, append(f.urls, url)
	}
	return f
}

func (f *fleet) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{f.schema}.Sanitize())
}

func (f *fleet) exec(statement string, args ...any) {
	f.Helper()
	pgtest.Exec(f, f.pool, f.sql(statement), args...)
}

func (f *fleet) count(query string, args ...any) (n int) {
	f.Helper()
	if err := f.pool.QueryRow(f.Context(), f.sql(query), args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", query, err)
	}
	return n
}

func (f *fleet) spawn(name string, candidate bool) (*children.Child, string) {
	f.Helper()
	given := child{DSN: f.server.DSN(), Schema: f.schema, Name: name, Candidate: candidate, Lease: f.lease}
	c := children.Spawn(f, childVariable, given, children.Options{Name: name})
	ready := f.await(c, "ready")
	return c, fmt.Sprintf("http://127.0.0.1:%d", ready.Sequence)
}

func (f *fleet) await(c *children.Child, kind string) children.Report {
	f.Helper()
	return children.Await(f, c, kind, time.Time{})
}

// leader waits until one of the candidates has written a request later than the
// given number of them, and returns its name.
func (f *fleet) leader(written int) (name string) {
	f.Helper()
	testkit.Await(f, fmt.Sprint("more than ", written, " requests are written"), func() bool { return f.count(`SELECT count(*) FROM {schema}.written`) > written })
	if err := f.pool.QueryRow(f.Context(), f.sql(`SELECT node FROM {schema}.received ORDER BY term DESC LIMIT 1`)).Scan(&name); err != nil {
		f.Fatal(err)
	}
	return name
}

// post sends one request to the front node.
func (f *fleet) post(ctx context.Context, client *http.Client, path string, number int64) (status int, err error) {
	status, _, err = post(ctx, client, f.front+path, number)
	return status, err
}

// post sends one request, and returns the leader that the answer names.
func post(ctx context.Context, client *http.Client, url string, number int64) (status int, leader string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(fmt.Sprint(number)))
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header.Get(leaderhttp.LeaderHeader), err
}

// kill kills the leader some times, and returns when requests are written again.
func (f *fleet) kill(times int) {
	f.Helper()
	for range times {
		leader := f.leader(f.count(`SELECT count(*) FROM {schema}.written`) + 200)
		f.candidates[leader].Kill()
		f.leader(f.count(`SELECT count(*) FROM {schema}.written`) + 200)
	}
}

// killed reports whether the candidate with a URL was killed.
func (f *fleet) killed(url string) bool {
	name := slices.Sorted(maps.Keys(f.candidates))[slices.Index(f.urls, url)]
	select {
	case <-f.candidates[name].Ended():
		return true
	default:
		return false
	}
}

// check compares what was received and written with how many requests succeeded.
func (f *fleet) check(success int64) {
	f.Helper()
	if n := f.count(`SELECT count(*) - count(DISTINCT number) FROM {schema}.received`); n > 0 {
		f.Errorf("%d requests were received twice", n)
	}
	if n := f.count(`SELECT count(*) FROM {schema}.received WHERE NOT valid`); n > 0 {
		f.Errorf("%d requests were received without a valid term", n)
	}
	if n := f.count(`SELECT count(*) FROM (SELECT term FROM {schema}.received GROUP BY term HAVING count(DISTINCT node) > 1) AS shared`); n > 0 {
		f.Errorf("%d terms received requests on more than one node", n)
	}
	if written := f.count(`SELECT count(*) FROM {schema}.written`); int64(written) < success {
		f.Errorf("%d requests were written and %d succeeded", written, success)
	}
}

// The leader is killed twice under load. Requests go to the present leader, none is
// sent twice, and each client loses at most the one that was in flight.
func TestKilledLeaderLosesAtMostRequestsInFlight(t *testing.T) {
	f := newFleet(t, time.Minute, "a", "b", "c") // a lease that no load of the machine uses up
	const clients, kills = 8, 2
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var (
		load    sync.WaitGroup
		numbers atomic.Int64
		failed  [clients]atomic.Int64
		success atomic.Int64
	)
	for i := range clients {
		client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
		load.Go(func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				switch status, err := f.post(context.WithoutCancel(ctx), client, "/", numbers.Add(1)); {
				case err != nil:
					t.Errorf("client %d: %v; the front node must answer each request", i, err)
					return
				case status == http.StatusOK:
					success.Add(1)
				case status == http.StatusBadGateway:
					failed[i].Add(1)
				default:
					t.Errorf("client %d: status %d, want 200, or 502 for a request in flight", i, status)
				}
			}
		})
	}
	f.kill(kills)
	stop()
	load.Wait()
	for i := range failed {
		if n := failed[i].Load(); n > kills {
			t.Errorf("client %d lost %d requests in %d kills, want at most one each time", i, n, kills)
		}
	}
	f.check(success.Load())
	t.Logf("%d requests, %d succeeded", numbers.Load(), success.Load())
}

// A leader is paused while it handles a forwarded request. When it resumes, another
// one leads, and the fence refuses its write.
func TestStaleLeaderCannotWriteForwardedRequest(t *testing.T) {
	f := newFleet(t, 3*time.Second, "a", "b")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	if status, err := f.post(t.Context(), client, "/", 1); status != http.StatusOK {
		t.Fatalf("first request: %d, %v", status, err)
	}
	stale := f.candidates[f.leader(0)]
	held := make(chan int, 1)
	go func() {
		status, err := f.post(context.WithoutCancel(t.Context()), client, "/held", 2)
		if err != nil {
			t.Error(err)
		}
		held <- status
	}()
	f.await(stale, "held")
	if err := stale.Stop(); err != nil {
		t.Fatal(err)
	}
	if status := <-held; status != http.StatusBadGateway {
		t.Errorf("the request that the paused leader handles: %d, want 502 when its term is over", status)
	}
	if status, err := f.post(t.Context(), client, "/", 3); status != http.StatusOK {
		t.Errorf("a request while the old leader is paused: %d, %v; want 200 of the next leader", status, err)
	}
	f.exec(`INSERT INTO {schema}.go VALUES (true)`)
	if err := stale.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if tried := f.await(stale, "tried"); !strings.Contains(tried.Error, "fenced") {
		t.Errorf("the write of the stale leader: %s, want it to be fenced", tried.Error)
	}
	if n := f.count(`SELECT count(*) FROM {schema}.written WHERE number = 2`); n > 0 {
		t.Errorf("the request of the stale leader was written %d times, want 0", n)
	}
}
