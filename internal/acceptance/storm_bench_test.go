package acceptance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// BenchmarkBareStorm is the machine's limit for TestMembersOfLargeClusterAgree: as many
// members join, leave, drain and are killed at the same time, but each is two bare
// connections. One waits for the lock of its neighbor; the other listens, and reads one
// row of a registry after each notification. Nothing is elected, leased or checked, and the
// neighbor of a member is known without a statement.
//
//	go test ./internal/acceptance -run '^$' -bench BareStorm -benchtime 60x
func BenchmarkBareStorm(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"max_connections": "400"}})
	db, err := postgres.New(server.DSN(), postgres.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	config, err := pgx.ParseConfig(server.DSN())
	if err != nil {
		b.Fatal(err)
	}
	s := &storm{b: b, config: config, pool: server.Pool(b), random: rand.New(rand.NewPCG(1, 0)), places: make([]*bare, residents+separate)}
	s.start()
	s.settle()
	for b.Loop() {
		s.round()
		b.StopTimer()
		s.settle()
		b.StartTimer()
	}
	for _, m := range s.end() {
		m.close()
	}
	s.group.Wait()
	b.ReportMetric(0, "ns/op")
	for _, kind := range []struct {
		name string
		took []time.Duration
	}{{"quiet", s.took}, {"joining", s.amid}} {
		slices.Sort(kind.took)
		for _, part := range []float64{0.5, 0.99} {
			if n := len(kind.took); n > 0 {
				b.ReportMetric(float64(kind.took[int(part*float64(n-1))].Microseconds())/1000, fmt.Sprintf("ms-p%v-%s", 100*part, kind.name))
			}
		}
	}
}

// storm is a cluster of bare members.
type storm struct {
	b      *testing.B
	config *pgx.ConnConfig
	pool   *pgxpool.Pool
	random *rand.Rand
	places []*bare // nil where one has left
	born   int32
	group  sync.WaitGroup

	mu         sync.Mutex
	ring       []*bare // by number: those that live, and those whose end was not noticed
	dying      []*bare // were killed in this round
	took, amid []time.Duration
}

// bare is a member. Its lock is that of its number.
type bare struct {
	storm          *storm
	number         int32
	id             string
	listens, waits *pgx.Conn

	// Under storm.mu:
	watched   *bare
	leaves    bool
	died      time.Time      // zero while it lives
	amid      bool           // others joined when it died
	witnesses map[*bare]bool // that have not read of its death
	seen      chan struct{}  // closed when there are none left
}

const (
	stormLock   = "SELECT pg_advisory_lock(42, $1::int)"
	stormWait   = "SELECT pg_advisory_xact_lock_shared(42, $1::int)"
	stormRead   = "SELECT * FROM tenure_nodes WHERE id = $1"
	stormChange = "WITH changed AS (UPDATE tenure_nodes SET status = $2 WHERE id = $1 RETURNING id) SELECT pg_notify('storm', id::text) FROM changed"
	stormJoin   = `WITH joined AS (INSERT INTO tenure_nodes (id, incarnation, name, hostname, lease_ms, status, pid, backend_start)
		VALUES ($1, $2, $3, 'localhost', 10000, 'active', pg_backend_pid(), now()) RETURNING id) SELECT pg_notify('storm', id::text) FROM joined`
	stormLeave = "WITH gone AS (DELETE FROM tenure_nodes WHERE id = $1 RETURNING id) SELECT pg_notify('storm', id::text) FROM gone"
)

// start has a member join at each free place.
func (s *storm) start() {
	var group sync.WaitGroup
	for place, m := range s.places {
		if m == nil {
			s.born++
			m := &bare{storm: s, number: s.born, id: uuid.NewString(), seen: make(chan struct{})}
			s.places[place] = m
			group.Go(func() {
				if err := m.join(context.Background()); err != nil {
					s.b.Error(err)
				}
			})
		}
	}
	group.Wait()
}

func (m *bare) join(ctx context.Context) (err error) {
	s := m.storm
	if m.listens, err = pgx.ConnectConfig(ctx, s.config.Copy()); err != nil {
		return err
	}
	if m.waits, err = pgx.ConnectConfig(ctx, s.config.Copy()); err != nil {
		return err
	}
	if _, err = m.listens.Exec(ctx, stormLock, m.number); err != nil {
		return err
	}
	if _, err = m.listens.Exec(ctx, "LISTEN storm"); err != nil {
		return err
	}
	if _, err = m.listens.Exec(ctx, stormJoin, m.id, m.number, fmt.Sprint(m.number)); err != nil {
		return err
	}
	s.mu.Lock()
	s.ring = append(s.ring, m)
	slices.SortFunc(s.ring, func(a, b *bare) int { return cmp.Compare(a.number, b.number) })
	s.mu.Unlock()
	s.group.Go(m.listen)
	s.group.Go(m.watch)
	return nil
}

// listen reads the row that each notification names.
func (m *bare) listen() {
	ctx := context.Background()
	for {
		n, err := m.listens.WaitForNotification(ctx)
		if err != nil {
			return
		}
		rows, err := m.listens.Query(ctx, stormRead, n.Payload)
		if err != nil {
			return
		}
		dead := false
		for rows.Next() {
			values, err := rows.Values()
			dead = err == nil && slices.ContainsFunc(values, func(v any) bool { return v == any("dead") })
		}
		if rows.Err() == nil && dead {
			m.see(n.Payload)
		}
	}
}

// see notes that the member has read of a death, now.
func (m *bare) see(id string) {
	s := m.storm
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dead := range s.dying {
		if dead.id != id || !dead.witnesses[m] {
			continue
		}
		if took := time.Since(dead.died); dead.amid {
			s.amid = append(s.amid, took)
		} else {
			s.took = append(s.took, took)
		}
		if delete(dead.witnesses, m); len(dead.witnesses) == 0 {
			close(dead.seen)
		}
	}
}

// beforeLocked returns the member before this one in the ring.
func (m *bare) beforeLocked() *bare {
	ring := m.storm.ring
	at := slices.Index(ring, m)
	return ring[(at-1+len(ring))%len(ring)]
}

// watch waits for the end of the member before this one, and records its death.
func (m *bare) watch() {
	ctx, s := context.Background(), m.storm
	for {
		s.mu.Lock()
		if m.leaves || !m.died.IsZero() {
			s.mu.Unlock()
			return
		}
		m.watched = m.beforeLocked()
		p := m.watched
		s.mu.Unlock()
		if _, err := m.waits.Exec(ctx, stormWait, p.number); err != nil {
			var canceled *pgconn.PgError
			if errors.As(err, &canceled) && canceled.Code == "57014" { // the member before it has changed
				continue
			}
			return
		}
		s.mu.Lock()
		left := p.leaves
		s.mu.Unlock()
		if !left {
			if _, err := m.waits.Exec(ctx, stormChange, p.id, "dead"); err != nil {
				return
			}
		}
		s.mu.Lock()
		s.ring = slices.DeleteFunc(s.ring, func(other *bare) bool { return other == p })
		s.mu.Unlock()
	}
}

// end has all members leave the ring, and returns them.
func (s *storm) end() []*bare {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.ring
	s.ring = nil
	for _, m := range all {
		m.leaves = true
	}
	return all
}

func (m *bare) close() {
	for _, conn := range []*pgx.Conn{m.listens, m.waits} {
		_ = conn.PgConn().Conn().Close()
	}
}

// kill ends members without a word.
func (s *storm) kill(victims []*bare, joins bool) {
	s.mu.Lock()
	for _, m := range victims {
		m.died, m.amid, m.witnesses = time.Now(), joins, map[*bare]bool{}
	}
	for _, m := range victims {
		for _, other := range s.ring {
			if !other.leaves && other.died.IsZero() {
				m.witnesses[other] = true
			}
		}
	}
	s.dying = victims
	s.mu.Unlock()
	for _, m := range victims {
		m.close()
	}
}

func (s *storm) change(sql string, args ...any) {
	if _, err := s.pool.Exec(context.Background(), sql, args...); err != nil {
		s.b.Error(err)
	}
}

// round does what a round of the cluster's test does.
func (s *storm) round() {
	var group sync.WaitGroup
	kills, leaves, drains := s.random.IntN(4), s.random.IntN(5), s.random.IntN(5)
	joins := s.random.IntN(2) == 0
	var victims, leavers []*bare
	for range kills {
		i := residents + s.random.IntN(separate)
		if m := s.places[i]; m != nil {
			s.places[i], victims = nil, append(victims, m)
		}
	}
	for _, i := range s.random.Perm(residents)[:leaves+drains] {
		m := s.places[i]
		switch {
		case m == nil:
		case leaves > 0:
			leaves--
			s.places[i], leavers = nil, append(leavers, m)
		default:
			group.Go(func() { s.change(stormChange, m.id, "draining") })
		}
	}
	s.mu.Lock()
	for _, m := range leavers {
		m.leaves = true
	}
	s.mu.Unlock()
	s.kill(victims, joins)
	for _, m := range leavers {
		group.Go(func() {
			s.change(stormLeave, m.id)
			m.close()
		})
	}
	if joins {
		s.start()
	}
	group.Wait()
	for _, m := range victims {
		select {
		case <-m.seen:
		case <-time.After(patience):
			s.b.Fatalf("%d members have not read of a death", len(m.witnesses))
		}
	}
}

// settle waits until every member watches the one before it.
func (s *storm) settle() {
	deadline := time.Now().Add(patience)
	for {
		var wrong []uint32
		s.mu.Lock()
		s.dying = nil
		s.ring = slices.DeleteFunc(s.ring, func(m *bare) bool { return m.leaves })
		for _, m := range s.ring {
			if m.watched != m.beforeLocked() {
				wrong = append(wrong, m.waits.PgConn().PID())
			}
		}
		s.mu.Unlock()
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.b.Fatalf("%d members do not watch the one before them", len(wrong))
		}
		s.change("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = ANY ($1::int[]) AND wait_event = 'advisory'", wrong)
		time.Sleep(time.Millisecond)
	}
}
