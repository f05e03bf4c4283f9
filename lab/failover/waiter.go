package main

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
)

// bareTables are tables as those of the nodes, with the same indexes and as many rows as
// there are roles.
const bareTables = `
CREATE TABLE IF NOT EXISTS bare_roles (LIKE tenure_terms INCLUDING ALL) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS bare_history (LIKE tenure_history INCLUDING ALL)`

const bareRows = `
INSERT INTO bare_roles (role, lock_key)
SELECT role, hashtextextended(role, 0)::text FROM generate_series(1, $1::int) i, format('role-%s', lpad(i::text, 5, '0')) role
ON CONFLICT DO NOTHING`

// takeBare is the least that the begin of terms costs: locks, rows and history, in one
// statement whose commit waits for no flush. Without locks it does nothing.
const takeBare = `
WITH locked AS MATERIALIZED (
    SELECT count(pg_advisory_lock(42, i)) AS locks, set_config('synchronous_commit', 'off', true) FROM generate_series(1, $1::int) i
), begun AS (
    UPDATE bare_roles
    SET term = term + 1, node_id = gen_random_uuid(), node_name = 'bare', incarnation = 1, acquired_at = clock_timestamp()
    FROM locked
    WHERE locks > 0
    RETURNING role, term, node_id, node_name, incarnation, acquired_at
)
INSERT INTO bare_history (role, term, node_id, node_name, incarnation, acquired_at, ended_at)
SELECT role, term, node_id, node_name, incarnation, acquired_at, acquired_at FROM begun`

// waiter is the limit of the machine: a connection that waits for the lock and then
// acquires and records its roles in one statement.
type waiter struct {
	conn  *pgx.Conn
	roles int
	holds atomic.Bool
}

const (
	waiterLock   = "SELECT pg_advisory_lock(42)"
	waiterUnlock = "SELECT pg_advisory_unlock_all()"
)

func runWaiter(dsn string, roles int, commands <-chan string) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	w := &waiter{conn: conn, roles: roles}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	go children.Watch(0, children.Leads(w.holds.Load)) // as the nodes do: it costs them something to die
	children.Send(children.Report{Kind: "ready"})
	if err := w.take(ctx); err != nil {
		return err
	}
	for range commands { // release
		children.Send(children.Report{Kind: "fault"})
		w.holds.Store(false)
		if _, err := conn.Exec(ctx, waiterUnlock); err != nil {
			return err
		}
		if err := w.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare executes each statement once, since the first execution on a connection costs more.
func (w *waiter) prepare(ctx context.Context) error {
	if _, err := w.conn.Exec(ctx, bareTables); err != nil {
		return err
	}
	if _, err := w.conn.Exec(ctx, bareRows, w.roles); err != nil {
		return err
	}
	_, err := w.conn.Exec(ctx, takeBare, 0)
	return err
}

// take waits for the lock and begins the terms of the roles, and reports both. With several
// roles it has acquired them only when their terms have begun.
func (w *waiter) take(ctx context.Context) error {
	if _, err := w.conn.Exec(ctx, waiterLock); err != nil {
		return err
	}
	if w.roles == 1 {
		children.Send(children.Report{Kind: "acquired"})
	}
	if _, err := w.conn.Exec(ctx, takeBare, w.roles); err != nil {
		return err
	}
	if w.roles > 1 {
		children.Send(children.Report{Kind: "acquired"})
	}
	children.Send(children.Report{Kind: "begun"})
	w.holds.Store(true)
	return nil
}
