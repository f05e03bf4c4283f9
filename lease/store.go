package lease

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// StoreConfig configures a [Store]. The zero value is ready to use.
type StoreConfig struct {
	// Window is how long a candidate stays eligible after it was last heard of,
	// and a leader keeps its seat without renewing it. Default 60 s; at least
	// 1 ms. Call Elect well within it: three times is usual.
	Window time.Duration
	// Prefix begins the names of the tables, election_candidate and
	// election_leader: lower-case letters, digits and underscores, at most 40.
	// Default "gemstone_", the tables of gemstone_utils.
	Prefix string
	// Logger receives what happens to the tables, and what other programs did
	// to them. Default slog.Default().
	Logger *slog.Logger
}

// Store elects one leader for each namespace among candidates, which are UUIDs,
// by leases in two tables. Every question of time is answered by the database's
// clock, in SQL.
//
// A candidate's id belongs to one process at a time: two with one id would both
// lead. A store does not notice a failover: a promoted replica that lacks the last
// commits can have a second leader for up to one window.
//
// A namespace has 1 to 255 characters, none of them a control character; an
// empty one means "default". A context without a deadline gets one of 10 s. A
// call that lost a conflict with others is tried again. An error matches one of
// tenure's, such as tenure.ErrConnection or tenure.ErrBusy, where a caller could
// do something about it. A Store is safe for concurrent use.
//
// The tables are those of the Python library gemstone_utils with two columns
// more, and both can elect in the same namespaces at the same time. Where its
// tables are used, namespaces are compared as they were created: on MySQL usually
// without regard to case and to spaces at the end. A namespace that would share a
// seat with a differently written one is refused.
type Store struct {
	database
	tx     *sql.Tx // the caller's; nil if transactions are the store's own
	config StoreConfig
	// migrated is true once the tables were seen to fit, outside any transaction
	// of a caller, which could be rolled back and the tables with it.
	migrated *atomic.Bool
	// writing lets one goroutine at a time write to a file of SQLite: those that
	// wait for the file itself sleep and try again, in no order. Nil elsewhere.
	writing chan struct{}
	queries *storeQueries
	files   *storeFiles
}

// NewStore makes a store on a pool of connections, which stays the caller's to
// close. It does not connect. See [NewBackend] for what each database needs.
func NewStore(db *sql.DB, dialect Dialect, config StoreConfig) (*Store, error) {
	if err := dialect.validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	store := &Store{
		database: database{db, dialect},
		config:   config,
		migrated: new(atomic.Bool),
		queries:  newStoreQueries(dialect, config),
		files:    new(storeFiles),
	}
	if dialect == SQLite {
		store.writing = make(chan struct{}, 1)
	}
	return store, nil
}

// In returns the store with its statements in the caller's transaction, which
// they neither commit nor roll back. Nothing is migrated and nothing is tried
// again there: after an error, roll back. An answer counts only when the
// transaction has been committed.
//
// The transaction locks the seats it asks for until it ends, so it should be
// short. On SQLite begin it with BEGIN IMMEDIATE (the driver has an option), or
// it may fail with tenure.ErrBusy when it first writes.
func (s *Store) In(tx *sql.Tx) *Store {
	in := *s
	in.tx = tx
	return &in
}

// Register makes a candidate eligible in a namespace for one window. It adds the
// candidate if it is unknown, and does not renew the lease of a leader: only
// Elect does.
func (s *Store) Register(ctx context.Context, namespace string, candidate uuid.UUID) error {
	namespace, err := checked(namespace, candidate)
	if err != nil {
		return err
	}
	return s.write(ctx, "register a candidate", func(ctx context.Context, on querier) error {
		return s.touch(ctx, on, candidate, []string{namespace})
	})
}

// Heartbeat is Register, for candidates that are registered already. It, too,
// adds one that is unknown and does not renew the lease of a leader.
func (s *Store) Heartbeat(ctx context.Context, namespace string, candidate uuid.UUID) error {
	return s.Register(ctx, namespace, candidate)
}

// touch makes a candidate eligible in namespaces.
func (s *Store) touch(ctx context.Context, on querier, candidate uuid.UUID, namespaces []string) error {
	args := make([]any, 0, 2*len(namespaces))
	for _, namespace := range namespaces {
		args = append(args, namespace, candidate.String())
	}
	return s.execute(ctx, on, s.queries.touch, len(namespaces), args...)
}

// Unregister removes a candidate from a namespace. If it is the leader, the seat
// is vacant at once.
func (s *Store) Unregister(ctx context.Context, namespace string, candidate uuid.UUID) error {
	namespace, err := checked(namespace, candidate)
	if err != nil {
		return err
	}
	return s.write(ctx, "unregister a candidate", func(ctx context.Context, on querier) error {
		for _, query := range []string{s.queries.leave, s.queries.vacate} {
			if err := s.execute(ctx, on, query, 1, namespace, candidate.String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Candidates lists the eligible candidates of a namespace, in the order of their
// bytes.
func (s *Store) Candidates(ctx context.Context, namespace string) ([]uuid.UUID, error) {
	namespace, err := checkedNamespace(namespace)
	if err != nil {
		return nil, err
	}
	var candidates []uuid.UUID
	err = s.question(ctx, "list the candidates", func(ctx context.Context, on querier) error {
		return s.forEach(ctx, on, s.queries.candidates, 1, func(rows *sql.Rows) error {
			var stored, id string
			if err := rows.Scan(&stored, &id); err != nil {
				return err
			}
			if stored != namespace {
				return sharedNamespace(namespace, stored)
			}
			candidate, err := parseID(namespace, id)
			candidates = append(candidates, candidate)
			return err
		}, namespace)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(candidates, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return candidates, nil
}

// write runs fn, which changes something: in a transaction of its own, or in
// the caller's.
func (s *Store) write(ctx context.Context, doing string, fn func(context.Context, querier) error) error {
	if s.tx != nil {
		return s.inside(ctx, doing, fn)
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.inTurn(ctx, doing, fn)
}

// inTurn runs fn in a transaction of its own.
func (s *Store) inTurn(ctx context.Context, doing string, fn func(context.Context, querier) error) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if s.writing != nil {
		select {
		case s.writing <- struct{}{}:
			defer func() { <-s.writing }()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", doing, tenure.ErrBusy, ctx.Err())
		}
	}
	return s.atomicallyThen(ctx, doing, fn, s.files.check)
}

// question runs fn, one statement that only reads.
func (s *Store) question(ctx context.Context, doing string, fn func(context.Context, querier) error) error {
	if s.tx != nil {
		return s.inside(ctx, doing, fn)
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.read(ctx, doing, fn)
}

// inside runs fn in the caller's transaction.
func (s *Store) inside(ctx context.Context, doing string, fn func(context.Context, querier) error) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := s.mustFit(ctx, s.tx); err != nil {
		return s.dialect.explain(doing, err)
	}
	return s.dialect.explain(doing, fn(ctx, s.tx))
}

// execute runs a statement for n namespaces.
func (s *Store) execute(ctx context.Context, on querier, query string, n int, args ...any) error {
	_, err := on.ExecContext(ctx, s.queries.fill(query, n), args...)
	return err
}

// forEach hands each row of a query for n namespaces to scan.
func (s *Store) forEach(ctx context.Context, on querier, query string, n int, scan func(*sql.Rows) error, args ...any) error {
	return forEach(ctx, on, s.queries.fill(query, n), scan, args...)
}
