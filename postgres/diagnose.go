package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/postgres/internal/diagnosis"
	"github.com/exactly-one/tenure/postgres/internal/link"
)

// CheckLockTable reports whether the server's lock table has room for a number of roles
// on the current nodes and, if not, the necessary max_locks_per_transaction. The table
// has max_locks_per_transaction * (max_connections + max_prepared_transactions) locks.
// Half of it must hold a lock for each role, two for each node, and the present locks of
// other sessions. It changes nothing. ctx bounds it; without a deadline it ends after 30
// s.
func (b *Backend) CheckLockTable(ctx context.Context, roles int) doctor.Finding {
	return b.examiner.CheckLockTable(ctx, roles)
}

// CheckSynchronousFailover reports whether the server's settings permit the declaration of
// [tenure.Config.SynchronousFailover]: a promoted standby has every acknowledged commit,
// and the old primary acknowledges none afterwards. It sees the settings of this primary
// only. A failover manager may change them, or stop the other standbys.
func (b *Backend) CheckSynchronousFailover(ctx context.Context) doctor.Finding {
	return b.examiner.CheckSynchronousFailover(ctx)
}

// Diagnose connects and reports obstacles to an election, in the order in which a session
// would find them. It performs the steps of opening a session up to the first heartbeat
// and rolls them back, so other sessions see no change. After a failure, impossible
// checks are left out. ctx bounds it; without a deadline it ends after 30 s.
func (b *Backend) Diagnose(ctx context.Context) []doctor.Finding { return b.examiner.Diagnose(ctx) }

// rehearsal is a session for a diagnosis. Other sessions see no change.
type rehearsal struct {
	session *session
	watch   *pgx.Conn
}

// openRehearsal opens the two connections of a session.
func (b *Backend) openRehearsal(ctx context.Context) (diagnosis.Trial, error) {
	s := b.newSession(doctorOpening())
	var err error
	if s.conn, err = b.connect.Dial(ctx, pgdial.Migration, "doctor", s.listener); err != nil {
		return nil, err
	}
	s.network = link.Raw(s.conn)
	watch, err := b.connect.Dial(ctx, pgdial.Watch, "doctor watch", nil)
	if err != nil {
		link.Discard(s.conn)
		return nil, fmt.Errorf("a second connection: %w", err)
	}
	return &rehearsal{s, watch}, nil
}

func (r *rehearsal) Conn() *pgx.Conn { return r.session.conn }

func (r *rehearsal) Close() {
	link.Discard(r.watch)
	link.Discard(r.session.conn)
}

func (r *rehearsal) ExamineServer(ctx context.Context) (version int, err error) {
	err = r.session.examineServer(ctx, r.watch)
	return r.session.server.Version, err
}

// doctorOpening is the session options of a node with the default timing. The node does
// not appear in the registry.
func doctorOpening() tenure.SessionOptions {
	const lease = 10 * time.Second
	host, _ := os.Hostname() // may be empty
	return tenure.SessionOptions{
		Node:        tenure.NodeInfo{ID: uuid.New(), Name: "doctor", Host: host},
		Description: tenure.Description{Status: tenure.StatusActive},
		Timing:      tenure.Timing{Lease: lease, RefreshInterval: lease / 3, Margin: lease / 10},
		Clock:       clocks.System(),
		Logger:      slog.New(slog.DiscardHandler),
		MaySend:     func() bool { return true },
	}
}

// errTakenBack ends the transaction of a rehearsal.
var errTakenBack = errors.New("taken back")

// Rehearse performs the steps of a session before it campaigns, with the same settings
// and statements. It writes the row and sends the heartbeat in a transaction and rolls it
// back, so no other node sees them.
func (r *rehearsal) Rehearse(ctx context.Context) error {
	err := r.session.ready(ctx, r.watch)
	if err == nil {
		err = r.session.rehearse(ctx)
	}
	if err != nil {
		return r.session.backend.explain(err)
	}
	return nil
}

func (s *session) rehearse(ctx context.Context) error {
	var locked bool
	if err := s.conn.QueryRow(ctx, lockNode, s.space, s.incarnation).Scan(&locked); err != nil || !locked {
		return errors.Join(err, fmt.Errorf("the node lock was taken: %t", locked))
	}
	if err := s.backend.names.StartListening(ctx, s.conn); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if err := s.insertRow(ctx, tx); err != nil {
			return fmt.Errorf("join: %w", err)
		}
		s.trying = true
		defer context.AfterFunc(ctx, func() { _ = s.network.Close() })()
		if _, err := s.Heartbeat(tenure.Load{}); err != nil {
			return err
		}
		return errTakenBack
	})
	if errors.Is(err, errTakenBack) {
		return nil
	}
	return err
}
