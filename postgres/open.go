package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgdial"
)

// Open implements [tenure.Backend]. Unless [Config.ManualMigrations] is set, it
// creates the schema, or brings it up to date. ctx bounds only the opening, not the
// session.
func (b *Backend) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	s := b.newSession(opening)
	var err error
	if s.conn, err = b.dialOpening(ctx, pgdial.Migration, opening.Node.Name+" session", s.listener); err != nil {
		return nil, err
	}
	s.network = raw(s.conn)
	s.listener.pid = s.conn.PgConn().PID()
	watched, err := b.dialOpening(ctx, pgdial.Watch, opening.Node.Name+" watch", s.silence)
	if err != nil {
		discard(s.conn)
		return nil, err
	}
	if err := s.open(ctx, watched); err != nil {
		b.failedOpenings.add(opening.Node.ID, s.incarnation)
		b.dialer.Avoid(s.conn)
		discard(watched)
		discard(s.conn)
		return nil, b.explain(err)
	}
	b.dialer.Opened()
	b.failedOpenings.forget(opening.Node.ID)
	b.schema.Forget() // the session may be the first of a new installation
	s.watch.start(watched)
	return s, nil
}

func (b *Backend) newSession(opening tenure.SessionOptions) *session {
	return &session{
		backend:   b,
		opening:   opening,
		log:       opening.Logger,
		listener:  newConnListener(b.names.nodesChannel(), opening.NodesChanged),
		heldRoles: map[string]*heldRole{},
		keys:      map[tenure.LockKey]struct{}{},
		known:     map[string]tenure.LockKey{},
		blocked:   map[string]blockage{},
		silence:   new(silenceTimer),
		openedAt:  opening.Clock.Now().Mono,
	}
}

// open makes a session of two new connections.
func (s *session) open(ctx context.Context, watched *pgx.Conn) error {
	b := s.backend
	if err := s.examineServer(ctx, watched); err != nil {
		return err
	}
	if err := b.openSchema(ctx, s.conn, s.migrator()); err != nil {
		return err
	}
	if err := s.ready(ctx, watched); err != nil {
		return err
	}
	s.server.notice(b.lineages.arrive(s.opening.Node.ID, s.server.lineage(), s.opening.Clock.Now().Mono))
	s.watch = newWatch(s)
	s.terminator.init(s)
	s.abort = s.onceAbort()
	if err := s.join(ctx); err != nil {
		return err
	}
	if err := pgdial.Apply(ctx, s.conn, pgdial.Session, sessionLimits(s.opening.Timing, s.incarnation)); err != nil {
		return err
	}
	return pgdial.Idle(s.conn.PgConn())
}

// ready prepares both connections for all that a session sends.
func (s *session) ready(ctx context.Context, watched *pgx.Conn) error {
	b := s.backend
	if err := s.readSchema(ctx); err != nil {
		return err
	}
	if err := pgdial.Apply(ctx, s.conn, pgdial.Session, openingLimits(s.opening.Timing, s.incarnation)); err != nil {
		return err
	}
	if err := b.names.prepare(ctx, s.conn, sessionStatements); err != nil {
		return err
	}
	if err := b.names.prepare(ctx, watched, watchStatements); err != nil {
		return err
	}
	if err := warm(ctx, s.conn, sessionWarmUp); err != nil {
		return err
	}
	return warm(ctx, watched, watchWarmUp)
}

// examineServer refuses a server on which elections would not be safe.
func (s *session) examineServer(ctx context.Context, watched *pgx.Conn) error {
	key := newProbeKey()
	own, err := probeConnection(ctx, s.conn, key)
	if err != nil {
		return err
	}
	other, err := probeConnection(ctx, watched, key)
	if err != nil {
		return err
	}
	refusal := refuse(own, other)
	if refusal != nil && !errors.Is(refusal, ErrLocksIgnored) {
		return refusal
	}
	_, err = s.conn.Exec(ctx, endProbe, key.a, key.b)
	switch {
	case err != nil && s.conn.IsClosed(): // both acquired the lock if the first session ended in between
		return fmt.Errorf("%w: end the test of locks: %w", tenure.ErrConnection, err)
	case refusal != nil:
		return refusal
	case err != nil:
		return fmt.Errorf("end the test of locks: %w", err)
	}
	s.server = own.server
	return identify(ctx, s.conn, &s.server)
}

// migrator returns the function that migrates the schema for this session, or nil
// if it must not. A migration has a separate time limit.
func (s *session) migrator() migrator {
	b := s.backend
	if b.config.ManualMigrations {
		return nil
	}
	return func(ctx context.Context, conn *pgx.Conn) error {
		if extend := s.opening.Extend; extend != nil {
			extend(migrationTimeout)
			defer extend(0)
		}
		return b.migrate(ctx, conn)
	}
}

// openSchema acquires the installation's lock and checks that the schema exists and
// is complete, and that this user may work with it.
func (b *Backend) openSchema(ctx context.Context, conn *pgx.Conn, migrate migrator) error {
	versions, err := b.enterInstallation(ctx, conn, migrate)
	if err != nil {
		return err
	}
	// A migration runs as the database role that the user has chosen, and everything
	// else as the user itself.
	if err := pgdial.Apply(ctx, conn, pgdial.Question, limitsOf(pgdial.Question)); err != nil {
		return err
	}
	// Before anything else reads the tables.
	if err := b.checkParts(ctx, conn, versions); err != nil {
		return err
	}
	return b.checkPrivileges(ctx, conn)
}

// maxSkipped bounds the numbers of sessions that one statement skips.
const maxSkipped = 100_000

// readSchema reads what a session needs before its first statement.
func (s *session) readSchema(ctx context.Context) error {
	sql := s.backend.names.sql
	if err := s.conn.QueryRow(ctx, sql(readInstallation)).Scan(&s.installation); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return errNoInstallation(sql("{installation}"))
		}
		return fmt.Errorf("read the installation: %w", err)
	}
	s.space = nodeSpace(s.installation)
	s.keys[s.backend.lockKey()] = struct{}{}

	read := func() error {
		var age, up, longest float64
		err := s.conn.QueryRow(ctx, sql(readServer)).Scan(&s.server.id, &age, &up, &s.server.byMigration, &longest)
		now := s.opening.Clock.Now().Mono
		s.server.bornAt, s.server.upAt = now-fromMilliseconds(age), now-fromMilliseconds(up)
		s.server.longest = fromMilliseconds(longest)
		return err
	}
	err := read()
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = s.conn.Exec(ctx, sql(renewServer)); err == nil {
			err = read()
		}
	}
	if err != nil {
		return fmt.Errorf("read the server's incarnation: %w", err)
	}

	for skipped := int32(1); ; {
		var present int32
		if err := s.conn.QueryRow(ctx, sql(drawIncarnation), skipped).Scan(&s.incarnation, &present); err != nil {
			return fmt.Errorf("generate an incarnation: %w", err)
		}
		if s.incarnation > present {
			s.keys[s.nodeKey()] = struct{}{}
			return nil
		}
		skipped = min(present-s.incarnation+1, maxSkipped)
	}
}

// nodeKey is the key of the node lock.
func (s *session) nodeKey() tenure.LockKey {
	return tenure.LockKey{Key: int64(s.space), Key2: s.incarnation, Pair: true}
}

// nodeSpace is the first of the two integers of node locks, which keeps the
// installations of one database apart.
func nodeSpace(installation uuid.UUID) int32 {
	sum := sha256.Sum256(append(installation[:], "nodes"...))
	return int32(binary.BigEndian.Uint32(sum[:4]))
}

// readSpace is nodeSpace in SQL.
const readSpace = `(SELECT ('x' || left(encode(sha256(uuid_send(id) || 'nodes'::bytea), 'hex'), 8))::bit(32)::int FROM {installation})`

// lacksObject reports whether a statement failed because the schema has no such table,
// column or function.
func lacksObject(err error) bool {
	return hasCode(err, codeUndefinedTable) || hasCode(err, codeUndefinedColumn) || hasCode(err, codeUndefinedFunction)
}

// explain adds a category to an error of opening that has none: the error may be
// temporary.
func (b *Backend) explain(err error) error {
	switch {
	case errors.Is(err, tenure.ErrTenure):
		return fmt.Errorf("open a session: %w", err)
	case hasCode(err, codeInsufficientPrivilege):
		return fmt.Errorf("%w: open a session: %w", dberr.ErrPrivilege, err)
	case lacksObject(err): // no retry creates it
		return fmt.Errorf("%w: open a session: another build of Tenure made the tables, or they are damaged: run tenure doctor: %w", dberr.ErrSchema, err)
	case hasCode(err, codeUntranslatable): // of the node's name, host or description
		return fmt.Errorf("%w: %w: the database cannot keep the node's name or labels: %w", tenure.ErrRefused, tenure.ErrInvalidConfig, err)
	default:
		return fmt.Errorf("%w: open a session: %w", tenure.ErrConnection, err)
	}
}
