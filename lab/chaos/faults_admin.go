//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

// requester is who the nodes' records name for what the run asks for.
const requester = "chaos"

// asAdmin runs a function with a connection of an administrator.
func (b *bed) asAdmin(ctx context.Context, run func(conn *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return run(conn)
}

func (b *bed) execute(ctx context.Context, statements ...string) error {
	return b.asAdmin(ctx, func(conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

func terminateSessions(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	err := b.execute(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
	return nil, "", err
}

// hold begins a transaction with a statement and keeps it open.
func (b *bed) hold(ctx context.Context, statement string, args ...any) (release func(context.Context) error, err error) {
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return nil, err
	}
	release = func(ctx context.Context) error {
		_ = conn.Close(ctx) // a node may have terminated it
		return nil
	}
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return release, err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return release, err
}

func lockTables(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	release, err := b.hold(ctx, "LOCK TABLE tenure_terms, tenure_nodes IN ACCESS EXCLUSIVE MODE")
	return release, "", err
}

// holdRow keeps the row of a role locked, as a fenced transaction does, and has its
// leader step down.
func holdRow(ctx context.Context, b *bed, _ *member, s script.Step) (func(context.Context) error, string, error) {
	release, err := b.hold(ctx, "SELECT FROM tenure_terms WHERE role = $1 FOR KEY SHARE", roleName(s.Role))
	if err != nil {
		return release, "", err
	}
	_, note, err := stepDown(ctx, b, nil, s)
	return release, note, err
}

// setting changes a setting of the whole server.
func setting(name, value string) injection {
	return func(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
		heal := func(ctx context.Context) error {
			var err error
			until(ctx, injectTime, func() bool { // the setting can end this connection, too
				err = b.execute(ctx, "SET statement_timeout = 0", "ALTER SYSTEM RESET "+name, "SELECT pg_reload_conf()")
				return err == nil
			})
			return err
		}
		return heal, "", b.execute(ctx, fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, value), "SELECT pg_reload_conf()")
	}
}

func stepDown(ctx context.Context, b *bed, _ *member, s script.Step) (func(context.Context) error, string, error) {
	err := b.backend.Request(ctx, tenure.Request{Kind: tenure.RequestStepDown, Role: roleName(s.Role), By: requester})
	if errors.Is(err, tenure.ErrNoLeader) {
		return nil, "it had no leader", nil
	}
	return nil, "", err
}

func drain(ctx context.Context, b *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	b.mu.Lock()
	id := m.id
	b.mu.Unlock()
	if id == uuid.Nil {
		return nil, "", errors.New("the node has not joined")
	}
	heal := func(ctx context.Context) error {
		b.mu.Lock()
		same := m.id == id
		b.mu.Unlock()
		if !same {
			return nil
		}
		var err error
		until(ctx, injectTime, func() bool {
			err = b.backend.Request(ctx, tenure.Request{Kind: tenure.RequestUndrain, Node: id, By: requester})
			return err == nil
		})
		return err
	}
	err := b.backend.Request(ctx, tenure.Request{Kind: tenure.RequestDrain, Node: id, By: requester})
	if errors.Is(err, tenure.ErrUnknownNode) || errors.Is(err, tenure.ErrLastNode) {
		return nil, "", err
	}
	return heal, "", err
}

// migrateDown tries to remove the schema. It must be refused while a node lives, and
// one does for certain if the first session of a witness that joined before still lives
// after it. The witness has the lease of the other nodes: if the server crashes, so that it
// cannot leave, they wait for it that long.
func migrateDown(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	const limit = 20 * time.Second
	opening, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	logger := slog.New(slog.NewTextHandler(b.logs, nil)).With("process", requester)
	witness, err := tenure.Open(opening, b.backend, tenure.Config{
		Name: requester, Lease: b.lease, Margin: b.lease / marginFraction, CheckInterval: b.lease / checkFraction, Logger: logger,
	})
	if err != nil {
		return nil, "", err
	}
	attempt, cancelAttempt := context.WithTimeout(ctx, limit)
	defer cancelAttempt()
	err = b.backend.MigrateDown(attempt, "all", 0)
	stats := witness.Stats()
	lives := stats.Connected && stats.Sessions == 1
	closing, cancelClosing := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancelClosing()
	closed := witness.Close(closing)
	switch {
	case errors.Is(err, dberr.ErrInstallationInUse):
		return nil, "refused", closed
	case err == nil && lives:
		b.recordViolation("the schema was removed while a node lived")
	}
	return nil, "", errors.Join(err, closed)
}

func deleteNode(ctx context.Context, b *bed, m *member, _ script.Step) (func(context.Context) error, string, error) {
	b.mu.Lock()
	id := m.id
	b.mu.Unlock()
	return nil, "", b.asAdmin(ctx, func(conn *pgx.Conn) error {
		b.steps.Record(steps.Step{Kind: steps.Forgets, Node: id.String()})
		_, err := conn.Exec(ctx, "DELETE FROM tenure_nodes WHERE id = $1", id)
		return err
	})
}

func vacuum(ctx context.Context, b *bed, _ *member, _ script.Step) (func(context.Context) error, string, error) {
	return nil, "", b.asAdmin(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname LIKE 'tenure\\_%'")
		if err != nil {
			return err
		}
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, table := range tables {
			if err == nil {
				_, err = conn.Exec(ctx, "VACUUM FULL "+pgx.Identifier{table}.Sanitize())
			}
		}
		return err
	})
}
