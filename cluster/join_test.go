package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/tenuretest"
)

// losing is a store whose first sessions are lost when the registry is read.
type losing struct {
	*postgres.Backend
	sessions int
}

func (l *losing) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	session, err := l.Backend.Open(ctx, opening)
	if err != nil || l.sessions == 0 {
		return session, err
	}
	l.sessions--
	return &lostSession{session.(registrySession)}, nil
}

type registrySession interface {
	tenure.Session
	tenure.RegistrySession
}

type lostSession struct{ registrySession }

func (s *lostSession) Members() ([]tenure.Member, error) {
	s.Abort()
	return nil, fmt.Errorf("%w: %w: connection reset by peer", tenure.ErrSessionLost, tenure.ErrConnection)
}

// A session that is lost between the opening and the first reading of the
// registry delays joining and does not fail it.
func TestJoinSurvivesLostSessions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := cluster.Join(ctx, &losing{s.store(), 2}, quiet("a"), cluster.Config{Address: "127.0.0.1"})
	if err != nil {
		t.Fatalf("Join: %v", err)
	}
	if n := len(m.Nodes()); n != 1 {
		t.Errorf("the member sees %d nodes, want 1", n)
	}
	if err := m.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// slow is a store whose first session does not answer the first reading of the registry
// until the node gives the session up, as an overloaded server.
type slow struct {
	*postgres.Backend
	reads atomic.Int32
}

func (l *slow) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	session, err := l.Backend.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	return &slowSession{registrySession: session.(registrySession), store: l, givenUp: make(chan struct{})}, nil
}

type slowSession struct {
	registrySession
	store   *slow
	givenUp chan struct{}
	once    sync.Once
}

func (s *slowSession) Abort() {
	s.once.Do(func() { close(s.givenUp) })
	s.registrySession.Abort()
}

func (s *slowSession) Members() ([]tenure.Member, error) {
	if s.store.reads.Add(1) == 1 {
		<-s.givenUp
	}
	return s.registrySession.Members()
}

func TestJoinSurvivesTheEndOfTrust(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	store := &slow{Backend: newSite(t).store()}
	config := quiet("a")
	config.Lease = 2 * time.Second
	m, err := cluster.Join(ctx, store, config, cluster.Config{Address: "127.0.0.1"})
	if err != nil {
		t.Fatalf("the registry was read %d times: Join: %v", store.reads.Load(), err)
	}
	if n := store.reads.Load(); n < 2 {
		t.Errorf("the registry was read %d times, want 2 or more", n)
	}
	if err := m.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// busy is a store whose table of nodes is locked during the first reading of the registry.
type busy struct {
	*postgres.Backend
	site  site
	reads atomic.Int32
}

func (b *busy) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	session, err := b.Backend.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	return &busySession{session.(registrySession), b}, nil
}

type busySession struct {
	registrySession
	store *busy
}

func (s *busySession) Members() ([]tenure.Member, error) {
	if s.store.reads.Add(1) > 1 {
		return s.registrySession.Members()
	}
	t, site := s.store.site.t, s.store.site
	tx, err := pgtest.Conn(t, site.dsn).Begin(t.Context())
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+site.table("nodes")+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return nil, err
	}
	members, err := s.registrySession.Members()
	return members, errors.Join(err, tx.Rollback(t.Context()))
}

func TestJoinReadsBusyRegistryAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	store := &busy{Backend: s.store(), site: s}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	config := quiet("a")
	config.Lease, config.RefreshInterval, config.CheckInterval = time.Minute, 2*time.Second, 100*time.Millisecond
	m, err := cluster.Join(ctx, store, config, cluster.Config{Address: "127.0.0.1"})
	if err != nil {
		t.Fatalf("Join: %v", err)
	}
	if n := store.reads.Load(); n < 2 {
		t.Errorf("the registry was read %d times, want 2 or more", n)
	}
	if err := m.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// unreadable is a store whose registry cannot be read over a session for a time.
type unreadable struct {
	*tenuretest.Database
	failing atomic.Bool
}

func (u *unreadable) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	session, err := u.Database.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	return &unreadableSession{session.(registrySession), u}, nil
}

type unreadableSession struct {
	registrySession
	store *unreadable
}

func (s *unreadableSession) Members() ([]tenure.Member, error) {
	if s.store.failing.Load() {
		return nil, dberr.ErrDatabase
	}
	return s.registrySession.Members()
}

// A member that is drained while it still joins refuses work, as any other.
func TestMemberIsDrainedWhileItJoins(t *testing.T) {
	t.Parallel()
	store := &unreadable{Database: tenuretest.NewDatabase()}
	store.failing.Store(true)
	config := quiet("a")
	config.CheckInterval = 100 * time.Millisecond
	joined := start(func() error {
		m, err := cluster.Join(within(t), store, config, cluster.Config{})
		if err != nil {
			return err
		}
		defer func() { _ = m.Close(within(t)) }()
		if _, accepted := m.InFlight().Enter(); accepted {
			return errors.New("the member accepts work")
		}
		return nil
	})
	var id cluster.NodeID
	for change := range cluster.Watch(within(t), store, tenure.Config{}, everyStatus) {
		if len(change.Nodes) > 0 {
			id = change.Nodes[0].ID
			break
		}
	}
	if err := cluster.DrainNode(within(t), store, id, cluster.DrainOptions{Force: true}); err != nil {
		t.Errorf("DrainNode: %v", err)
	}
	store.failing.Store(false)
	if err := result(t, joined); err != nil {
		t.Error(err)
	}
}

// Joining ends with its context.
func TestJoinEndsWithItsContext(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newSite(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // a busy machine needs some of it for the first session
	defer cancel()
	_, err := cluster.Join(ctx, &losing{s.store(), 1 << 30}, quiet("a"), cluster.Config{Address: "127.0.0.1"})
	if !errors.Is(err, tenure.ErrSessionLost) && !errors.Is(err, tenure.ErrConnection) {
		t.Errorf("Join: %v; want the loss of the session", err)
	}
}
