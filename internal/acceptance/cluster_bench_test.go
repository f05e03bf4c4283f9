package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	membership "github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// BenchmarkCluster measures what a cluster costs as it grows, with all members in
// this process and no roles: how long it takes all of them to join, how long until a
// death is known to half of the others and to all, how many statements a second a member
// sends when nothing happens, how many rows a second the server then reads for all of
// them, and how much memory a member needs here. For comparison it measures what the
// machine allows: as many bare connections that listen, each of which reads the registry
// once after one notification and does nothing else.
//
//	go test ./internal/acceptance -run '^$' -bench Cluster -benchtime 20x -timeout 0
func BenchmarkCluster(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"max_connections": "1600"}})
	for _, size := range []int{2, 5, 10, 20, 50, 60, 100, 200, 500} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			c := &crowd{dsn: server.DSN(), schema: server.Schema(b), admin: server.Conn(b), seen: make(chan sighting, 4096)}
			c.measure(b, size)
		})
	}
}

// crowd is a cluster that is measured.
type crowd struct {
	dsn, schema string
	admin       *pgx.Conn
	seen        chan sighting
	born        int
}

// sighting records that a member saw another one disappear.
type sighting struct {
	node membership.NodeID
	at   time.Time
}

func (c *crowd) measure(b *testing.B, size int) {
	before, began := memoryInUse(), time.Now()
	present := c.fill(b, nil, size)
	joined := time.Since(began)
	memory := float64(memoryInUse()-before) / float64(size) / 1024
	c.await(b, present)
	statements, rows := c.idle(b)
	limit := c.bare(b, size)
	var half, all []time.Duration
	for b.Loop() {
		victim := present[0]
		died := time.Now()
		victim.die()
		sightings := c.sightings(b, victim, size-1)
		half = append(half, sightings[(size-1)/2].Sub(died))
		all = append(all, sightings[size-2].Sub(died))
		b.StopTimer()
		victim.leave(b)
		present = c.fill(b, present[1:], size)
		c.await(b, present)
		b.StartTimer()
	}
	b.ReportMetric(joined.Seconds(), "s-to-join")
	b.ReportMetric(memory, "KB/member")
	b.ReportMetric(statements/float64(size), "statements/s/member")
	b.ReportMetric(rows, "rows/s")
	b.ReportMetric(float64(limit.Microseconds())/1000, "bare-ms-to-all")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mean(half), "ms-to-half")
	b.ReportMetric(mean(all), "ms-to-all")
	slices.Sort(all)
	b.ReportMetric(mean(all[(len(all)*99+99)/100-1:][:1]), "p99-ms-to-all")
	var group sync.WaitGroup
	for _, m := range present {
		group.Go(func() { m.leave(b) })
	}
	group.Wait()
}

// mean returns the mean in milliseconds.
func mean(times []time.Duration) float64 {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return float64(sum.Microseconds()) / 1000 / float64(len(times))
}

// fill adds members until there are enough, a few at a time: to open a session
// costs the server more than anything else.
func (c *crowd) fill(b *testing.B, present []*mortal, size int) []*mortal {
	joined := make([]*mortal, size-len(present))
	turns := make(chan struct{}, 8)
	var group sync.WaitGroup
	for i := range joined {
		c.born++
		name := fmt.Sprintf("member%d", c.born)
		turns <- struct{}{}
		group.Go(func() {
			joined[i] = c.join(b, name)
			<-turns
		})
	}
	group.Wait()
	if slices.Contains(joined, nil) {
		b.Fatal("not all members have joined")
	}
	return append(slices.Clone(present), joined...)
}

// await waits until every member knows all of them and no other.
func (c *crowd) await(b *testing.B, present []*mortal) {
	truth := statuses{}
	for _, m := range present {
		truth[m.ID().String()] = statusOf(membership.Active, false)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for _, m := range present {
		for compare(statusesOf(m.Nodes()), truth) != "" {
			if time.Now().After(deadline) {
				b.Fatal(compare(statusesOf(m.Nodes()), truth))
			}
			<-tick.C
		}
	}
}

// idle returns how many statements arrive in a second when nothing happens, and how many
// rows the server reads for them.
func (c *crowd) idle(b *testing.B) (statements, rows float64) {
	const period = 20 * time.Second
	count := func() (n, rows float64) {
		const sql = "SELECT xact_commit::float8, tup_returned::float8 FROM pg_stat_database WHERE datname = current_database()"
		if err := c.admin.QueryRow(context.Background(), sql).Scan(&n, &rows); err != nil {
			b.Fatal(err)
		}
		return n, rows
	}
	// The server counts the statements of a connection when that has been idle
	// for ten seconds, at the latest.
	<-time.After(11 * time.Second)
	first, firstRows := count()
	<-time.After(period)
	statements, rows = count()
	return (statements - first) / period.Seconds(), (rows - firstRows) / period.Seconds()
}

// bare returns the median time from a notification until each of some
// connections has read the registry.
func (c *crowd) bare(b *testing.B, size int) time.Duration {
	const rounds = 9
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	table := pgx.Identifier{c.schema, "tenure_nodes"}.Sanitize()
	done := make(chan error, size)
	conns := make([]*pgx.Conn, size)
	for i := range conns {
		conns[i] = pgtest.Conn(b, c.dsn)
		if _, err := conns[i].Exec(ctx, "LISTEN bare"); err != nil {
			b.Fatal(err)
		}
	}
	took := make([]time.Duration, rounds)
	for round := range took {
		for _, conn := range conns {
			go func() {
				_, err := conn.WaitForNotification(ctx)
				if err == nil {
					_, err = conn.Exec(ctx, "SELECT * FROM "+table)
				}
				done <- err
			}()
		}
		begun := time.Now()
		if _, err := c.admin.Exec(ctx, "NOTIFY bare"); err != nil {
			b.Fatal(err)
		}
		for range conns {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		took[round] = time.Since(begun)
	}
	slices.Sort(took)
	return took[rounds/2]
}

// sightings returns when the others saw a member go, in order.
func (c *crowd) sightings(b *testing.B, gone *mortal, wanted int) []time.Time {
	var at []time.Time
	limit := time.After(patience)
	for len(at) < wanted {
		select {
		case s := <-c.seen:
			if s.node == gone.ID() {
				at = append(at, s.at)
			}
		case <-limit:
			b.Fatalf("%d of %d members have seen a death", len(at), wanted)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

func memoryInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

// mortal is a member whose connections can be cut as the death of its process
// would.
type mortal struct {
	*membership.Member
	backend *postgres.Backend
	watcher sync.WaitGroup

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

var errDead = errors.New("this member is dead")

func (c *crowd) join(b *testing.B, name string) *mortal {
	m := &mortal{}
	var err error
	if m.backend, err = postgres.New(c.dsn, postgres.Config{Schema: c.schema, Connect: m.connect}); err != nil {
		b.Error(err)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	m.Member, err = membership.Join(ctx, m.backend, tenure.Config{Name: name, Logger: quiet}, membership.Config{Address: "127.0.0.1"})
	if err != nil {
		b.Error(err)
		return nil
	}
	changes := m.Watch(context.Background(), membership.Filter{}) // ends with the member
	m.watcher.Go(func() {
		for change := range changes {
			if change.Kind == membership.Left {
				select {
				case c.seen <- sighting{change.Node.ID, time.Now()}:
				default: // at the end, when all leave
				}
			}
		}
	})
	return m
}

func (m *mortal) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, errors.Join(errDead, conn.PgConn().Conn().Close())
	}
	m.conns = append(m.conns, conn.PgConn().Conn())
	return conn, nil
}

// die closes all connections, and opens no more.
func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, conn := range m.conns {
		_ = conn.Close() // it may be closed already
	}
}

// leave ends what runs here of a member.
func (m *mortal) leave(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Close(ctx); err != nil && !errors.Is(err, tenure.ErrTenure) {
		b.Error(err)
	}
	m.watcher.Wait()
	m.backend.Close()
}
