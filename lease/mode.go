package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// On PostgreSQL an installation can also elect by sessions, which do not see leases. So it
// records its mode. Package postgres uses the same record and holds the lock of the
// installation while a session is open. Leases can connect through a pooler, so this
// package holds the lock only during the transaction that adds the row of a session.

// modePause is the time between two attempts to acquire the lock exclusively, and
// modeWait how long to try.
const (
	modePause = 20 * time.Millisecond
	modeWait  = 3 * time.Second
)

// modeTable returns the quoted name of the table with the record.
func (b *Backend) modeTable() string { return b.installationTable(installation.Table) }

// installationTable returns the quoted name of a table of the installation.
func (b *Backend) installationTable(table string) string {
	return b.db.Dialect.Table(b.config.Schema, installation.PrefixOfLeases(b.config.Prefix)+table)
}

func (b *Backend) modeSQL(statement string) string {
	return strings.ReplaceAll(statement, "{installation}", b.modeTable())
}

// refuseMode returns an error if the recorded mode is not leases.
func (b *Backend) refuseMode(mode string) error {
	return installation.Refuse(mode, installation.Leases, b.config.Schema, installation.PrefixOfLeases(b.config.Prefix))
}

// lockInstallation calls a function of PostgreSQL to lock the installation until the
// transaction ends, and reports whether it did.
func (b *Backend) lockInstallation(ctx context.Context, on sqldb.Querier, function string) (locked bool, err error) {
	first, second := installation.LockKey(b.config.Schema, installation.PrefixOfLeases(b.config.Prefix))
	query := fmt.Sprintf("SELECT %s(%d, %d)::text <> 'false'", function, first, second)
	err = sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error { return rows.Scan(&locked) })
	return locked, err
}

// lockMode returns an error if the installation elects by sessions. It prevents changes
// of the mode until the transaction ends.
func (b *Backend) lockMode(ctx context.Context, on sqldb.Querier) error {
	if b.db.Dialect != sqldb.PostgreSQL {
		return nil
	}
	if _, err := b.lockInstallation(ctx, on, "pg_advisory_xact_lock_shared"); err != nil {
		return err
	}
	mode, err := b.readMode(ctx, on)
	if err == nil && mode == "" {
		err = fmt.Errorf("%w: the row of %s is missing: call Migrate to add it", dberr.ErrSchema, b.modeTable())
	}
	if err != nil {
		return err
	}
	return b.refuseMode(mode)
}

func (b *Backend) readMode(ctx context.Context, on sqldb.Querier) (mode string, err error) {
	err = sqldb.ForEach(ctx, on, b.modeSQL(installation.ReadMode), func(rows *sql.Rows) error { return rows.Scan(&mode) })
	return mode, err
}

// checkMode returns an error if the installation elects by sessions, and an empty mode
// if none is recorded.
func (b *Backend) checkMode(ctx context.Context) (mode string, err error) {
	if b.db.Dialect != sqldb.PostgreSQL {
		return installation.Leases, nil
	}
	err = b.db.Read(ctx, "read the installation's mode", func(ctx context.Context, on sqldb.Querier) (err error) {
		if mode, err = b.readMode(ctx, on); err != nil {
			return err
		}
		return b.refuseMode(mode)
	})
	if mode == "" && errors.Is(err, dberr.ErrSchema) {
		return "", nil // there is no table
	}
	return mode, err
}

// claimMode records leases as the mode of the installation, unless a mode is already
// recorded.
func (b *Backend) claimMode(ctx context.Context) error {
	for deadline := time.Now().Add(modeWait); ; {
		mode, err := b.checkMode(ctx)
		if err != nil || mode != "" {
			return err
		}
		claimed, err := b.tryClaimMode(ctx)
		if err != nil || claimed {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: nodes with sessions are running, or are creating the installation: stop them first", dberr.ErrInstallationInUse)
		}
		if !wakeup.Sleep(ctx, modePause) {
			return fmt.Errorf("record the installation's mode: %w", context.Cause(ctx))
		}
	}
}

// tryClaimMode reports false if another process holds the installation's lock.
func (b *Backend) tryClaimMode(ctx context.Context) (claimed bool, err error) {
	err = b.db.InTx(ctx, "record the installation's mode", func(ctx context.Context, on sqldb.Querier) error {
		if claimed, err = b.lockInstallation(ctx, on, "pg_try_advisory_xact_lock"); err != nil || !claimed {
			return err
		}
		exists := false
		err := sqldb.ForEach(ctx, on, "SELECT to_regnamespace("+literal(b.db.Dialect.Quote(b.config.Schema))+") IS NOT NULL",
			func(rows *sql.Rows) error { return rows.Scan(&exists) })
		if err != nil {
			return err
		}
		statements := b.claimStatements()
		if exists { // IF NOT EXISTS alone needs the privilege to create
			statements = statements[1:]
		}
		for _, statement := range statements {
			if err := sqldb.Exec(ctx, on, statement); err != nil {
				return err
			}
		}
		return nil
	})
	return claimed && err == nil, err
}

// claimStatements returns the statements to create the schema and, in it, the record if
// they are missing.
func (b *Backend) claimStatements() []string {
	if b.db.Dialect != sqldb.PostgreSQL {
		return nil
	}
	return []string{
		"CREATE SCHEMA IF NOT EXISTS " + b.db.Dialect.Quote(b.config.Schema),
		strings.TrimSpace(b.modeSQL(installation.CreateMode)),
		b.modeSQL("INSERT INTO {installation} (mode) VALUES ('" + installation.Leases + "') ON CONFLICT DO NOTHING"),
	}
}

// dropMode removes the record if its mode is leases.
func (b *Backend) dropMode(ctx context.Context, on sqldb.Querier) error {
	if b.db.Dialect != sqldb.PostgreSQL {
		return nil
	}
	exists, left := false, 0
	err := sqldb.ForEach(ctx, on, "SELECT to_regclass("+literal(b.modeTable())+") IS NOT NULL", func(rows *sql.Rows) error { return rows.Scan(&exists) })
	if err != nil || !exists {
		return err
	}
	// If sessions have used the installation before, keep its id: they need it to elect
	// again.
	keep := "UPDATE {installation} SET mode = '" + installation.Sessions + "' WHERE to_regclass(" + literal(b.installationTable("incarnations")) + ") IS NOT NULL"
	if err := sqldb.Exec(ctx, on, b.modeSQL(keep)); err != nil {
		return err
	}
	if err := sqldb.Exec(ctx, on, b.modeSQL("DELETE FROM {installation} WHERE mode = '"+installation.Leases+"'")); err != nil {
		return err
	}
	err = sqldb.ForEach(ctx, on, b.modeSQL("SELECT count(*) FROM {installation}"), func(rows *sql.Rows) error { return rows.Scan(&left) })
	if err != nil || left > 0 {
		return err
	}
	return sqldb.Exec(ctx, on, b.modeSQL("DROP TABLE {installation}"))
}

// literal quotes a text for PostgreSQL.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

// refuseLiveNodes returns an error if a node has a live lease. On PostgreSQL it also
// prevents new sessions until the transaction ends.
func (b *Backend) refuseLiveNodes(ctx context.Context, on sqldb.Querier) error {
	if b.db.Dialect == sqldb.PostgreSQL {
		if err := sqldb.Exec(ctx, on, b.sql(lockSessionsQuery)); err != nil {
			return err
		}
	}
	living, err := b.liveNodes(ctx, on)
	if err != nil || len(living) == 0 {
		return err
	}
	return fmt.Errorf("%w: still running: %s: stop these nodes, or wait until their leases have expired",
		dberr.ErrInstallationInUse, strings.Join(living, ", "))
}

// liveNodes describes the nodes with live leases.
func (b *Backend) liveNodes(ctx context.Context, on sqldb.Querier) (living []string, err error) {
	err = sqldb.ForEach(ctx, on, b.sql(liveNodesQuery), func(rows *sql.Rows) error {
		var name, host string
		err := rows.Scan(&name, &host)
		living = append(living, fmt.Sprintf("node %q on %q", name, host))
		return err
	})
	return living, err
}
