package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Store elects one leader for each namespace. Its candidates are UUIDs. The
// database's clock decides, in SQL, whether a lease has expired.
//
// A candidate's id must belong to one process: two processes with the same id would
// both lead. A Store does not detect a failover of the database: if the promoted
// replica lacks the last commits, a namespace can have two leaders for one window.
//
// A namespace has 1 to 255 characters without control characters; the empty one means
// "default". If its context has no deadline, a call ends after 10 s. After a lost conflict
// with another transaction, a call is retried. Errors for callers to handle match errors
// of packages tenure and dberr, such as tenure.ErrConnection or dberr.ErrBusy. A Store is
// safe for concurrent use.
type Store struct {
	db     sqldb.DB
	tx     *sql.Tx // the caller's; nil if the store begins its own
	config Config
	// migrated is true once the tables were found complete outside a caller's transaction:
	// its rollback could remove them again.
	migrated *atomic.Bool
	// writing is held to write to a SQLite file: processes waiting for the file itself
	// poll it, in no order. Nil on other databases.
	writing chan struct{}
	queries *queries
	files   *connFiles
}

// New returns a Store on a pool of connections. The caller closes the pool. New does not
// connect. See [lease.NewBackend] for the required settings of each database. An error
// matches tenure.ErrInvalidConfig.
func New(db *sql.DB, dialect lease.Dialect, config Config) (*Store, error) {
	spoken := sqldb.Dialect(dialect)
	if err := spoken.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults(spoken)
	if err := config.validate(spoken); err != nil {
		return nil, err
	}
	store := &Store{
		db:       sqldb.DB{DB: db, Dialect: spoken},
		config:   config,
		migrated: new(atomic.Bool),
		queries:  newQueries(spoken, config),
		files:    new(connFiles),
	}
	if spoken == sqldb.SQLite {
		store.writing = make(chan struct{}, 1)
	}
	return store, nil
}

// In returns the store with its statements in the caller's transaction. The store neither
// commits it nor rolls it back. It creates no tables and retries nothing: after an error,
// roll back. A result counts only once the transaction has committed.
//
// The transaction locks the namespaces that it uses until it ends, so keep it short. On
// SQLite, begin it with BEGIN IMMEDIATE (drivers have an option for it). Otherwise its
// first write can fail with dberr.ErrBusy.
func (s *Store) In(tx *sql.Tx) *Store {
	in := *s
	in.tx = tx
	return &in
}

// Register makes a candidate eligible in a namespace for one window. It adds an
// unknown candidate. It does not renew the lease of a leader: only Elect does.
func (s *Store) Register(ctx context.Context, namespace string, candidate uuid.UUID) error {
	namespace, err := checkCandidate(namespace, candidate)
	if err != nil {
		return err
	}
	return s.write(ctx, "register a candidate", func(ctx context.Context, on sqldb.Querier) error {
		return s.register(ctx, on, candidate, []string{namespace})
	})
}

// Heartbeat is the same as Register, for candidates already registered.
func (s *Store) Heartbeat(ctx context.Context, namespace string, candidate uuid.UUID) error {
	return s.Register(ctx, namespace, candidate)
}

func (s *Store) register(ctx context.Context, on sqldb.Querier, candidate uuid.UUID, namespaces []string) error {
	args := make([]any, 0, 2*len(namespaces))
	for _, namespace := range namespaces {
		args = append(args, namespace, candidate.String())
	}
	return s.execute(ctx, on, s.queries.register, len(namespaces), args...)
}

// Unregister removes a candidate from a namespace. If the candidate leads, the
// namespace has no leader from then on.
func (s *Store) Unregister(ctx context.Context, namespace string, candidate uuid.UUID) error {
	namespace, err := checkCandidate(namespace, candidate)
	if err != nil {
		return err
	}
	return s.write(ctx, "unregister a candidate", func(ctx context.Context, on sqldb.Querier) error {
		for _, query := range []string{s.queries.unregister, s.queries.release} {
			if err := s.execute(ctx, on, query, 1, namespace, candidate.String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Candidates returns the eligible candidates of a namespace, sorted by their bytes.
func (s *Store) Candidates(ctx context.Context, namespace string) ([]uuid.UUID, error) {
	namespace, err := checkNamespace(namespace)
	if err != nil {
		return nil, err
	}
	var candidates []uuid.UUID
	err = s.read(ctx, "list the candidates", func(ctx context.Context, on sqldb.Querier) error {
		return s.forEach(ctx, on, s.queries.candidates, 1, func(rows *sql.Rows) error {
			var stored, id string
			if err := rows.Scan(&stored, &id); err != nil {
				return err
			}
			if stored != namespace {
				return errSharedNamespace(namespace, stored)
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

// write runs fn in the caller's transaction or in its own.
func (s *Store) write(ctx context.Context, doing string, fn func(context.Context, sqldb.Querier) error) error {
	if s.tx != nil {
		return s.inCallerTx(ctx, doing, fn)
	}
	if err := s.ensureTables(ctx); err != nil {
		return err
	}
	return s.inTx(ctx, doing, fn)
}

// inTx runs fn in a transaction of the store, on SQLite one at a time.
func (s *Store) inTx(ctx context.Context, doing string, fn func(context.Context, sqldb.Querier) error) error {
	ctx, cancel := sqldb.WithDefaultTimeout(ctx)
	defer cancel()
	if s.writing != nil {
		select {
		case s.writing <- struct{}{}:
			defer func() { <-s.writing }()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", doing, dberr.ErrBusy, ctx.Err())
		}
	}
	return s.db.InTxThen(ctx, doing, fn, s.files.check)
}

// read runs fn, one statement without writes.
func (s *Store) read(ctx context.Context, doing string, fn func(context.Context, sqldb.Querier) error) error {
	if s.tx != nil {
		return s.inCallerTx(ctx, doing, fn)
	}
	if err := s.ensureTables(ctx); err != nil {
		return err
	}
	return s.db.Read(ctx, doing, fn)
}

func (s *Store) inCallerTx(ctx context.Context, doing string, fn func(context.Context, sqldb.Querier) error) error {
	ctx, cancel := sqldb.WithDefaultTimeout(ctx)
	defer cancel()
	if s.db.Dialect == sqldb.SQLite {
		if err := sqldb.CheckNames(ctx, s.tx); err != nil {
			return s.db.Dialect.Explain(doing, err)
		}
	}
	if err := s.checkTables(ctx, s.tx); err != nil {
		return s.db.Dialect.Explain(doing, err)
	}
	return s.db.Dialect.Explain(doing, fn(ctx, s.tx))
}

// execute runs a statement for n namespaces.
func (s *Store) execute(ctx context.Context, on sqldb.Querier, query string, n int, args ...any) error {
	return sqldb.Exec(ctx, on, s.queries.fill(query, n), args...)
}

// forEach calls scan for each row of a query for n namespaces.
func (s *Store) forEach(ctx context.Context, on sqldb.Querier, query string, n int, scan func(*sql.Rows) error, args ...any) error {
	return sqldb.ForEach(ctx, on, s.queries.fill(query, n), scan, args...)
}
