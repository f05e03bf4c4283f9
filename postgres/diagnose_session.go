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
)

// doctorOpening is the session options of a node with the default timing, which
// does not appear in the registry.
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

// errTakenBack ends the transaction in which Diagnose tries a session.
var errTakenBack = errors.New("taken back")

// session performs the steps of a session before it campaigns, with the same
// settings and statements. It writes the row and sends the heartbeat in a
// transaction that is rolled back, so no other node sees them.
func (d *diagnosis) session(ctx context.Context, s *session, watch *pgx.Conn) {
	err := s.ready(ctx, watch)
	if err == nil {
		err = s.rehearse(ctx)
	}
	if err != nil {
		d.fail("session", d.backend.explain(err))
		return
	}
	d.add("session", doctor.OK, "opens like a node's, and its heartbeat is acknowledged", "")
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

const readEncoding = `SELECT current_setting('server_encoding')`

// encoding checks whether names may contain every character.
func (d *diagnosis) encoding(ctx context.Context, conn *pgx.Conn) error {
	var encoding string
	if err := conn.QueryRow(ctx, readEncoding).Scan(&encoding); err != nil {
		return err
	}
	if encoding == unicodeEncoding {
		d.add("encoding", doctor.OK, encoding, "")
		return nil
	}
	d.add("encoding", doctor.Warning, fmt.Sprintf("the database's is %s: role names must be ASCII", encoding),
		"use a database with the encoding UTF8 for other names")
	return nil
}
