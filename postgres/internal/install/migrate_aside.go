package install

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// A migration waiting for a table blocks every later session, including heartbeats and
// elections. So it waits for a limited time, then pauses to let the other sessions
// continue, and tries again.
const migrationPause = time.Second

// Bounds of the wait for a table: of the first attempt, and of later ones, in which the
// watch connections step aside.
const (
	firstTableWait = 300 * time.Millisecond
	laterTableWait = 700 * time.Millisecond
)

// inMigration runs fn in a transaction while no other process migrates the same
// schema. It calls fn again if another session's transaction held a table.
func (i *Installation) inMigration(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	err := i.tryMigration(ctx, conn, firstTableWait, fn)
	for sqlstate.Has(err, sqlstate.LockNotAvailable) {
		if !wakeup.Sleep(ctx, migrationPause) {
			return fmt.Errorf("migrate: a transaction keeps a table of the schema, see pg_stat_activity for long ones: %w", errors.Join(ctx.Err(), err))
		}
		err = i.migrateAside(ctx, conn, fn)
	}
	return i.migrationFailed(err)
}

// migrationFailed adds the remedy to an error of a migration.
func (i *Installation) migrationFailed(err error) error {
	switch {
	case err == nil:
		return nil
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return fmt.Errorf("%w: the schema needs a migration and this user may not create tables in %s: migrate as its owner, or GRANT CREATE ON SCHEMA %s TO %s: %w",
			dberr.ErrPrivilege, i.Names.Schema, pgx.Identifier{i.Names.Schema}.Sanitize(), i.Names.Grantee, err)
	case sqlstate.Has(err, sqlstate.DuplicateTable), sqlstate.Has(err, sqlstate.DuplicateObject), sqlstate.Has(err, sqlstate.DuplicateFunction):
		return fmt.Errorf("%w: schema %q has an object of another program, or of leases, with a name of ours: choose another prefix than %q, or another schema: %w",
			dberr.ErrSchema, i.Names.Schema, i.Names.Prefix, err)
	case sqlstate.Has(err, sqlstate.Prerequisite):
		return fmt.Errorf("%w: migrate: %w", dberr.ErrSchema, err)
	}
	return fmt.Errorf("migrate: %w", err)
}

// tryMigration makes one attempt.
func (i *Installation) tryMigration(ctx context.Context, conn *pgx.Conn, tableWait time.Duration, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		sum := sha256.Sum256([]byte("tenure migrations\x00" + i.Names.Schema + "\x00" + i.Names.Prefix))
		if _, err := tx.Exec(ctx, lockMigrations, int64(binary.BigEndian.Uint64(sum[:8]))); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, link.LimitWait, link.Milliseconds(tableWait)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// A call of the watch function locks the table of nodes. It can last for 30 s, and the
// next one follows immediately. When a node may have died, a call returns soon, and the
// next call queues behind an already waiting migration. So as soon as the migration waits
// for the table, the sequences are advanced as after a death, on another connection since
// the watches must see it.
const stepAside = `
SELECT nextval({releases:regclass}), nextval({membership:regclass})
FROM pg_catalog.pg_locks
WHERE pid = $1 AND NOT granted AND locktype = 'relation' AND relation = {nodes:regclass}`

// migrateAside is tryMigration while it makes the watch connections step aside.
func (i *Installation) migrateAside(ctx context.Context, conn *pgx.Conn, fn func(pgx.Tx) error) error {
	asking, err := i.Connector.DialMigration(ctx)
	if err != nil {
		return err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // exits when stop is closed; this function waits for it
		defer close(done)
		i.askWatchersAside(ctx, asking, conn.PgConn().PID(), stop)
	}()
	err = i.tryMigration(ctx, conn, laterTableWait, fn)
	close(stop)
	<-done
	link.Discard(asking)
	return err
}

// askWatchersAside advances the sequence once the backend waits for the table of
// nodes. If it fails, the migration depends on its next attempt.
func (i *Installation) askWatchersAside(ctx context.Context, conn *pgx.Conn, pid uint32, stop chan struct{}) {
	const pause = 5 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		var moved int64
		err := conn.QueryRow(ctx, i.Names.SQL(stepAside), int64(pid)).Scan(&moved)
		if !errors.Is(err, pgx.ErrNoRows) {
			return
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}
