package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

const oldestServer = 140000

// examineServer refuses a server if elections would not be safe on it.
func (s *session) examineServer(ctx context.Context, watched *pgx.Conn) error {
	key := server.NewProbeKey()
	own, err := server.ProbeConnection(ctx, s.conn, key)
	if err != nil {
		return err
	}
	other, err := server.ProbeConnection(ctx, watched, key)
	if err != nil {
		return err
	}
	if err := s.judge(ctx, own, other, key); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, server.EndProbe, key); err != nil {
		return fmt.Errorf("end the test of locks: %w", err)
	}
	return server.Identify(ctx, s.conn, &s.server)
}

// judge decides from the probes of both connections, see refuse.
func (s *session) judge(ctx context.Context, own, other server.Probe, key int64) error {
	refusal := refuse(own, other)
	if errors.Is(refusal, ErrLocksIgnored) {
		_, err := s.conn.Exec(ctx, server.EndProbe, key)
		if err != nil && s.conn.IsClosed() { // both acquired the lock if the first session ended in between
			return fmt.Errorf("%w: end the test of locks: %w", tenure.ErrConnection, err)
		}
	}
	s.server = own.Server
	return refusal
}

// checkServer returns an error if another connection reached another server than the
// session: after a failover, the session may still be connected to the old primary.
func (s *session) checkServer(ctx context.Context, conn *pgx.Conn) error {
	var found server.Server
	if err := conn.QueryRow(ctx, server.ReadStart).Scan(&found.Start); err != nil {
		return err
	}
	if err := server.Identify(ctx, conn, &found); err != nil {
		return err
	}
	if !found.Same(s.server) {
		return fmt.Errorf("%w: the connection reached another server than the session", tenure.ErrConnection)
	}
	return nil
}

// refuse decides from the probes of both connections whether elections would be
// safe here.
func refuse(session, watch server.Probe) error {
	switch {
	case session.Pooled || watch.Pooled:
		return fmt.Errorf("%w: the server process that answers is not the one that accepted the connection. "+
			"Connect directly to PostgreSQL; session pooling does not suffice either, since a pooler keeps a session, and its locks, after its client has gone", dberr.ErrPooled)
	case !strings.HasPrefix(session.Name, "PostgreSQL ") && session.Locked && watch.Locked:
		return fmt.Errorf("%w: it is %s; use PostgreSQL 14 or later", ErrLocksIgnored, firstWords(session.Name))
	case session.Version < oldestServer:
		return fmt.Errorf("%w: it is %s; PostgreSQL 14 or later is needed", dberr.ErrServerTooOld, firstWords(session.Name))
	case !session.Start.Equal(watch.Start):
		return fmt.Errorf("%w: two connections reached two servers, one started at %s, one at %s",
			tenure.ErrConnection, session.Start.Format(time.RFC3339), watch.Start.Format(time.RFC3339))
	case session.Locked && watch.Locked:
		return fmt.Errorf("%w: two sessions hold the same lock. Connect directly to PostgreSQL 14 or later", ErrLocksIgnored)
	case !session.Locked:
		return fmt.Errorf("%w: another session holds the test lock", tenure.ErrConnection)
	}
	return nil
}

// firstWords shortens the text of version().
func firstWords(version string) string {
	words := strings.Fields(version)
	return strings.Join(words[:min(len(words), 2)], " ")
}
