package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/openlimit"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/server"
	"github.com/exactly-one/tenure/postgres/internal/signal"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// Open implements [tenure.Backend]. Unless [Config.ManualMigrations] is set, it
// creates the schema, or brings it up to date. ctx bounds only the opening, not the
// session.
func (b *Backend) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	s := b.newSession(opening)
	connecting, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := beside(func() (*pgx.Conn, error) {
		return b.connect.DialOpening(connecting, pgdial.Watch, opening.Node.Name+" watch", s.silence)
	})
	var err error
	if s.conn, err = b.connect.DialOpening(ctx, pgdial.Migration, opening.Node.Name+" session", s.listener); err != nil {
		cancel()
		if late, _ := watch(); late != nil {
			link.Discard(late)
		}
		return nil, err
	}
	s.network = link.Raw(s.conn)
	s.listener.pid = s.conn.PgConn().PID()
	err = s.open(ctx, watch)
	if err != nil {
		cancel()
	}
	watched, watchErr := watch()
	if err != nil {
		if watched != nil {
			link.Discard(watched)
		}
		link.Discard(s.conn)
		if watchErr != nil && errors.Is(err, watchErr) { // it was explained when it was dialed
			return nil, err
		}
		b.failedOpenings.Add(opening.Node.ID, s.incarnation)
		b.connect.Dialer.Avoid(s.conn)
		return nil, b.explain(err)
	}
	b.connect.Dialer.Opened()
	b.failedOpenings.Forget(opening.Node.ID)
	b.installation.Schema.Forget() // the session may be the first of a new installation
	s.watch.start(watched)
	return s, nil
}

// beside runs do in a goroutine. The goroutine ends with do. The caller must call wait,
// which returns the result.
func beside[T any](do func() (T, error)) (wait func() (T, error)) {
	var (
		value T
		err   error
		done  = make(chan struct{})
	)
	go func() {
		defer close(done)
		value, err = do()
	}()
	return func() (T, error) {
		<-done
		return value, err
	}
}

func (b *Backend) newSession(opening tenure.SessionOptions) *session {
	return &session{
		backend:   b,
		opening:   opening,
		log:       opening.Logger,
		listener:  newConnListener(b.names.NodesChannel(), opening.NodesChanged),
		heldRoles: map[string]*heldRole{},
		keys:      map[tenure.LockKey]struct{}{},
		known:     map[string]tenure.LockKey{},
		silence:   new(signal.SilenceTimer),
		openedAt:  opening.Clock.Now().Mono,
	}
}

// open makes a session of two new connections. The watch connection may still be
// connecting. To take few round trips, open sends statements ahead, sends independent
// ones together, and uses both connections at the same time.
func (s *session) open(ctx context.Context, watch func() (*pgx.Conn, error)) error {
	b := s.backend
	a := &link.Ahead{Conn: s.conn, Answered: s.answered}
	key := server.NewProbeKey()
	a.Send(ctx, server.ProbeCall(key), b.installation.EnterCall())
	own, err := server.ProbeConnection(ctx, a, key)
	if err != nil {
		return err
	}
	entered := b.installation.Entered(ctx, a)
	watched, err := watch()
	if err != nil {
		return err
	}
	probed := beside(func() (server.Probe, error) { return server.ProbeConnection(ctx, watched, key) })
	if entered {
		a.Send(ctx, s.checks()...)
	}
	other, err := probed()
	if err == nil {
		err = s.judge(ctx, own, other, key)
	}
	if err != nil {
		return err
	}
	if err := server.Identify(ctx, a, &s.server); err != nil {
		return err
	}
	if err := s.openSchema(ctx, a, entered); err != nil {
		return err
	}
	if err := s.readSchema(ctx, a); err != nil {
		return err
	}
	s.server.Notice(b.lineages.Arrive(s.opening.Node.ID, s.server.Lineage(), s.opening.Clock.Now().Mono))
	s.watch = newWatch(s)
	s.terminator.init(s)
	s.abort = s.onceAbort()

	prepared := beside(func() (struct{}, error) { return struct{}{}, prepareWatch(ctx, b.names, watched) })
	j := s.newJoining()
	a.Send(ctx, append([]link.Call{{SQL: server.EndProbe, Args: []any{key}}}, j.before()...)...)
	if _, err = a.Exec(ctx, server.EndProbe, key); err != nil {
		err = fmt.Errorf("end the test of locks: %w", err)
	} else {
		err = j.prepare(ctx, a)
	}
	if _, watchErr := prepared(); err == nil {
		err = watchErr
	}
	if err != nil {
		return err
	}
	a.Send(ctx, j.rest()...)
	if err := j.finish(ctx, a); err != nil {
		return err
	}
	return pgdial.Idle(s.conn.PgConn())
}

// answered gives the opening the usual time from now: a server that answers does not hang.
// If many nodes open together, attempts that ran out of time would begin again and slow
// all others down.
func (s *session) answered() {
	if extend := s.opening.Extend; extend != nil && s.opening.Clock.Now().Mono-s.openedAt < openlimit.Session.Most {
		extend(0)
	}
}

// checks are the statements between the two probes of locks and the lock of the node.
func (s *session) checks() []link.Call {
	b := s.backend
	sql := b.names.SQL
	calls := []link.Call{{SQL: server.IdentifyServer}}
	calls = append(calls, b.installation.CompleteCalls()...)
	calls = append(calls, link.ApplyCall(pgdial.Question, link.LimitsOf(pgdial.Question)))
	parts, arguments := b.installation.Schema.PartsQuery(b.installation.Core)
	calls = append(calls, link.Call{SQL: parts, Args: arguments})
	_, lacking := b.installation.RequiredPrivileges()
	return append(calls,
		link.Call{SQL: install.LackingPrivileges, Args: lacking},
		link.Call{SQL: sql(install.OtherSiblings)},
		link.Call{SQL: sql(install.ReadInstallation)},
		link.Call{SQL: sql(readServer)},
		link.Call{SQL: sql(drawIncarnation), Args: []any{int32(1)}},
		link.Call{SQL: sql(readRemnants), Args: []any{s.opening.Node.ID}},
	)
}

// ready prepares both connections of a doctor for all statements of a session.
func (s *session) ready(ctx context.Context, watched *pgx.Conn) error {
	a := &link.Ahead{Conn: s.conn}
	if err := s.readSchema(ctx, a); err != nil {
		return err
	}
	if err := a.Apply(ctx, pgdial.Session, link.OpeningLimits(s.opening.Timing, s.incarnation)); err != nil {
		return err
	}
	calls := s.preparations()
	a.Send(ctx, calls...)
	if err := a.CheckPreparations(calls); err != nil {
		return err
	}
	return prepareWatch(ctx, s.backend.names, watched)
}

// migrator returns the function to migrate the schema with, or nil if the session must
// not migrate. A migration has a separate time limit.
func (s *session) migrator() install.Migrator {
	b := s.backend
	if b.config.ManualMigrations {
		return nil
	}
	return func(ctx context.Context, conn *pgx.Conn) error {
		if extend := s.opening.Extend; extend != nil {
			extend(install.MigrationTimeout)
			defer extend(0)
		}
		// The settings of an opening may have been made already, see openSchema.
		if _, err := conn.Exec(ctx, "RESET ROLE"); err != nil {
			return err
		}
		if err := pgdial.Apply(ctx, conn, pgdial.Migration, link.LimitsOf(pgdial.Migration)); err != nil {
			return err
		}
		return b.installation.MigrateCore(ctx, conn)
	}
}

// openSchema acquires the installation's lock, unless it is held already. It checks that
// the schema exists and is complete, and the user's privileges.
func (s *session) openSchema(ctx context.Context, a *link.Ahead, entered bool) error {
	b, migrate := s.backend, s.migrator()
	var versions schema.Versions
	var err error
	if entered {
		versions, err = b.installation.Stay(ctx, a, migrate)
	} else {
		if s.opening.Extend != nil {
			defer s.opening.Extend(0)
		}
		versions, err = b.installation.Enter(ctx, a.Conn, migrate, s.opening.Extend)
	}
	if err != nil {
		return err
	}
	// A migration runs as the database role of the user's choice, everything else as the
	// user.
	if err := a.Apply(ctx, pgdial.Question, link.LimitsOf(pgdial.Question)); err != nil {
		return err
	}
	// Before anything else reads the tables.
	if err := b.installation.CheckParts(ctx, a, versions); err != nil {
		return err
	}
	return b.installation.CheckPrivileges(ctx, a)
}

// maxSkipped bounds how many session numbers one statement skips.
const maxSkipped = 100_000

// readSchema reads the data for the first statement of a session.
func (s *session) readSchema(ctx context.Context, conn link.Connection) error {
	sql := s.backend.names.SQL
	if err := conn.QueryRow(ctx, sql(install.ReadInstallation)).Scan(&s.installation); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return install.MissingRow(sql("{installation}"))
		}
		return fmt.Errorf("read the installation: %w", err)
	}
	s.space = install.NodeSpace(s.installation)
	s.keys[s.backend.installation.LockKey()] = struct{}{}

	read := func() error {
		var age, up, longest float64
		err := conn.QueryRow(ctx, sql(readServer)).Scan(&s.server.ID, &age, &up, &s.server.ByMigration, &longest)
		now := s.opening.Clock.Now().Mono
		s.server.BornAt, s.server.UpAt = now-link.FromMilliseconds(age), now-link.FromMilliseconds(up)
		s.server.Longest = link.FromMilliseconds(longest)
		return err
	}
	err := read()
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = conn.Exec(ctx, sql(renewServer)); err == nil {
			err = read()
		}
	}
	if err != nil {
		return fmt.Errorf("read the server's incarnation: %w", err)
	}

	for skipped := int32(1); ; {
		var present int32
		if err := conn.QueryRow(ctx, sql(drawIncarnation), skipped).Scan(&s.incarnation, &present); err != nil {
			return fmt.Errorf("generate an incarnation: %w", err)
		}
		if s.incarnation > present {
			break
		}
		skipped = min(present-s.incarnation+1, maxSkipped)
	}
	s.keys[s.nodeKey()] = struct{}{}
	if err := conn.QueryRow(ctx, sql(readRemnants), s.opening.Node.ID).Scan(&s.remnants.own, &s.remnants.others); err != nil {
		return fmt.Errorf("read what earlier sessions left: %w", err)
	}
	return nil
}

// nodeKey is the key of the node lock.
func (s *session) nodeKey() tenure.LockKey {
	return tenure.LockKey{Key: int64(s.space), Key2: s.incarnation, Pair: true}
}

// lacksObject reports whether a statement failed because the schema has no such table,
// column or function.
func lacksObject(err error) bool {
	return sqlstate.Has(err, sqlstate.UndefinedTable) || sqlstate.Has(err, sqlstate.UndefinedColumn) || sqlstate.Has(err, sqlstate.UndefinedFunction)
}

// explain adds the category "may be temporary" to an error of opening without a category.
func (b *Backend) explain(err error) error {
	switch {
	case errors.Is(err, tenure.ErrTenure):
		return fmt.Errorf("open a session: %w", err)
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return fmt.Errorf("%w: %sopen a session: %w", dberr.ErrPrivilege, sqlstate.Grant(err, b.names.Grantee), err)
	case lacksObject(err): // no retry creates it
		return fmt.Errorf("%w: open a session: another build of Tenure made the tables, or they are damaged: run tenure doctor: %w", dberr.ErrSchema, err)
	case sqlstate.Has(err, sqlstate.Untranslatable): // of the node's name, host or description
		return fmt.Errorf("%w: %w: the database cannot keep the node's name or labels: %w", tenure.ErrRefused, tenure.ErrInvalidConfig, err)
	default:
		return fmt.Errorf("%w: open a session: %w", tenure.ErrConnection, err)
	}
}
