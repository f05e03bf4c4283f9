package managed_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/retry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	lease    = 3 * time.Second
	patience = 60 * time.Second
	role     = "scheduler"
)

// site is a server and a database on it that belongs to a user without superuser.
type site struct {
	*testing.T
	server *pgtest.Server
	admin  *pgx.Conn // of the service, not of its customer
	dsn    string
	change func(*postgres.Config)
}

// newSite starts a server with the roles of a service. The user app owns the
// database app. In a short run it skips the test.
func newSite(t *testing.T, options pgtest.Options, statements ...string) *site {
	t.Helper()
	pgtest.Long(t)
	server := pgtest.Start(t, options)
	s := &site{T: t, server: server, admin: server.Conn(t), dsn: server.DSNFor("app", "app")}
	s.do("CREATE ROLE app LOGIN NOSUPERUSER")
	s.do("CREATE DATABASE app OWNER app")
	for _, statement := range statements {
		s.do(statement)
	}
	return s
}

// do runs a statement of the service.
func (s *site) do(sql string, args ...any) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := s.admin.Exec(ctx, sql, args...); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// truth reports whether a condition holds.
func (s *site) truth(sql string, args ...any) bool {
	s.Helper()
	var holds bool
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.admin.QueryRow(ctx, sql, args...).Scan(&holds); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return holds
}

// await waits until a condition holds.
func (s *site) await(what string, condition func() bool) {
	s.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// node campaigns for the role.
type node struct {
	*tenure.Node
	election *tenure.Election
	backend  *postgres.Backend
}

// backend is what a process of the customer has.
func (s *site) backend() *postgres.Backend {
	s.Helper()
	var config postgres.Config
	if s.change != nil {
		s.change(&config)
	}
	backend, err := postgres.New(s.dsn, config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(backend.Close)
	return backend
}

// open opens a node, or says why it cannot be.
func (s *site) open(name string, policy retry.Strategy) (*node, error) {
	s.Helper()
	n := &node{backend: s.backend()}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	n.Node, err = tenure.Open(ctx, n.backend, tenure.Config{
		Name: name, Lease: lease, FenceTimeout: time.Second, Logger: slog.New(slog.NewTextHandler(logLines{s.T}, nil)), Retry: policy,
	})
	if err != nil {
		return nil, err
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Close(ctx); err != nil && !errors.Is(err, tenure.ErrTermEnded) {
			s.Errorf("closing %s: %v", name, err)
		}
	})
	n.election, err = n.Election(tenure.NamedRole(role))
	return n, cmp.Or(err, n.election.Start(context.Background()))
}

// join opens a node that must open.
func (s *site) join(name string) *node {
	s.Helper()
	n, err := s.open(name, retry.FixedInterval{Interval: 100 * time.Millisecond})
	if err != nil {
		s.Fatalf("%s: %v", name, err)
	}
	return n
}

// nextTerm waits until one of the nodes leads a term with a higher number, while
// no two of them lead.
func (s *site) nextTerm(last int64, nodes ...*node) (*node, *tenure.Term) {
	s.Helper()
	var leader *node
	var term *tenure.Term
	s.await("the next leader", func() bool {
		leader, term = nil, nil
		for _, n := range nodes {
			held := n.election.Term()
			if held == nil || !held.Valid() {
				continue
			}
			if term != nil && term.Valid() && held.Valid() {
				s.Fatalf("%s and %s lead at the same time", leader.Name(), n.Name())
			}
			leader, term = n, held
		}
		return term != nil && term.Number() > last
	})
	return leader, term
}

// exercise holds elections the way users do: a fenced write, a step-down and the
// loss of the leader's session, and what the doctor says.
func (s *site) exercise() (leader *node, term *tenure.Term, nodes []*node) {
	s.Helper()
	nodes = []*node{s.join("one"), s.join("two")}
	leader, term = s.nextTerm(0, nodes...)
	s.write(term)
	for _, f := range leader.backend.Diagnose(s.Context()) {
		if f.Severity == doctor.Failure {
			s.Errorf("the doctor: %+v", f)
		}
	}

	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := leader.election.StepDown(ctx); err != nil {
		s.Fatal(err)
	}
	leader, next := s.nextTerm(term.Number(), nodes...)
	if err := s.tryWrite(term); !errors.Is(err, tenure.ErrFenced) && !errors.Is(err, tenure.ErrTermEnded) {
		s.Errorf("a write of term %d in term %d: %v; want it refused", term.Number(), next.Number(), err)
	}
	s.write(next)

	s.endSession(leader)
	leader, term = s.nextTerm(next.Number(), nodes...)
	s.write(term)
	return leader, term, nodes
}

// endSession ends a node's session on the server and waits until a leader has
// noticed: the next term may begin before that.
func (s *site) endSession(n *node) {
	s.Helper()
	held := n.election.Term()
	if !s.truth("SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE application_name = $1", "tenure "+n.Name()+" session") {
		s.Fatalf("%s has no session", n.Name())
	}
	s.await("the end of its term", func() bool { return held == nil || !held.Valid() })
}

func (s *site) hasSession(n *node) bool {
	s.Helper()
	return s.truth("SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = $1", "tenure "+n.Name()+" session")
}

// write writes in a term, fenced.
func (s *site) write(term *tenure.Term) {
	s.Helper()
	if err := s.tryWrite(term); err != nil {
		s.Errorf("a write of term %d: %v", term.Number(), err)
	}
}

func (s *site) tryWrite(term *tenure.Term) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config, err := pgx.ParseConfig(s.dsn)
	if err != nil {
		return err
	}
	connect := pgx.ConnectConfig
	var changed postgres.Config
	if s.change != nil {
		s.change(&changed)
	}
	if changed.Connect != nil {
		connect = changed.Connect
	}
	if changed.Password != nil {
		if config.Password, err = changed.Password(ctx); err != nil {
			return err
		}
	}
	conn, err := connect(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range []string{"SET default_transaction_read_only = off", "CREATE TABLE IF NOT EXISTS public.work (term bigint)"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return postgres.InTx(ctx, conn, term, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO public.work VALUES ($1)", term.Number())
		return err
	})
}

// logLines shows what a node logs until the test has ended.
type logLines struct{ t *testing.T }

func (l logLines) Write(line []byte) (int, error) {
	if l.t.Context().Err() != nil {
		return io.Discard.Write(line)
	}
	l.t.Logf("%s", line)
	return len(line), nil
}
