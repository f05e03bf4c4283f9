package dialects

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
)

// openSession opens a session without an engine.
func openSession(b *testing.B, k kind) tenure.Session {
	b.Helper()
	backend := newBackend(b, k.open(b), k.dialect, lease.Config{})
	session, err := backend.Open(soon(b), tenure.SessionOptions{
		Node:   tenure.NodeInfo{ID: uuid.New(), Name: "bench", Host: "localhost"},
		Timing: tenure.Timing{Lease: time.Minute, RefreshInterval: 20 * time.Second},
		Clock:  clocks.System(), Logger: slog.New(slog.DiscardHandler), MaySend: func() bool { return true },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(session.Abort)
	return session
}

// manyCandidates returns requests for n roles.
func manyCandidates(n int) []tenure.AcquireRequest {
	candidates := make([]tenure.AcquireRequest, n)
	for i := range candidates {
		candidates[i] = tenure.AcquireRequest{Role: tenure.NamedRole(fmt.Sprintf("role-%06d", i))}
	}
	return candidates
}

// takeAll acquires vacant roles.
func takeAll(b *testing.B, session tenure.Session, candidates []tenure.AcquireRequest) []tenure.ReleaseRequest {
	b.Helper()
	attempts, err := session.TryAcquire(candidates)
	if err != nil {
		b.Fatal(err)
	}
	releases := make([]tenure.ReleaseRequest, len(attempts))
	for i, a := range attempts {
		if a.Outcome != tenure.OutcomeGranted {
			b.Fatalf("%s: %+v", candidates[i].Role, a)
		}
		releases[i] = tenure.ReleaseRequest{Role: candidates[i].Role, Term: a.Term, Reason: history.EndResigned}
	}
	return releases
}

// One heartbeat renews the leases of all roles that a node holds.
func BenchmarkBackendHeartbeat(b *testing.B) {
	const roles = 10_000
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			session := openSession(b, k)
			candidates := manyCandidates(roles)
			for i := 0; i < roles; i += 1000 {
				takeAll(b, session, candidates[i:i+1000])
			}
			for b.Loop() {
				if _, err := session.Heartbeat(tenure.Load{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*roles/b.Elapsed().Seconds(), "leases/s")
		})
	}
}

// A node acquires a thousand released roles in one call.
func BenchmarkBackendAcquire(b *testing.B) {
	const roles = 1000
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			session := openSession(b, k)
			candidates := manyCandidates(roles)
			for b.Loop() {
				releases := takeAll(b, session, candidates)
				b.StopTimer()
				if err := session.Release(releases); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)*roles/b.Elapsed().Seconds(), "roles/s")
		})
	}
}

// BenchmarkBackendIdle measures what idle nodes cost: statements per second and the share
// of a core, both per node. One of the two nodes leads.
func BenchmarkBackendIdle(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			const nodes, roles = 2, 100
			c := newCluster(b, k)
			c.config = tenure.Config{Logger: c.config.Logger}
			statements := &atomic.Int64{}
			plain := k.connect(b, c.source)
			for i := range nodes {
				db := sql.OpenDB(counted{plain.Driver(), c.source, statements})
				b.Cleanup(func() { _ = db.Close() })
				m := c.joinOn(fmt.Sprintf("node-%d", i), db)
				for role := range roles {
					m.campaign(fmt.Sprintf("role-%03d", role))
				}
				leader := m.backend
				testkit.Await(b, "all roles are led", func() bool {
					leaders, err := leader.Leaders(soon(b))
					return err == nil && len(leaders) == roles
				})
			}
			<-time.After(time.Second) // until the last node has polled
			spent, counted, begun := processTime(b), statements.Load(), time.Now()
			for b.Loop() {
				<-time.After(10 * time.Second)
			}
			seconds := time.Since(begun).Seconds()
			b.ReportMetric(100*(processTime(b)-spent).Seconds()/seconds/nodes, "%core/node")
			b.ReportMetric(float64(statements.Load()-counted)/seconds/nodes, "statements/s/node")
		})
	}
}

// counted is a connector of a driver whose connections count their statements.
type counted struct {
	driver     driver.Driver
	source     string
	statements *atomic.Int64
}

func (c counted) Driver() driver.Driver { return c.driver }

func (c counted) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.source)
	if err != nil {
		return nil, err
	}
	return countedConn{conn, c.statements}, nil
}

type countedConn struct {
	driver.Conn
	statements *atomic.Int64
}

func (c countedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

func (c countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.statements.Add(1)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.statements.Add(1)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}
