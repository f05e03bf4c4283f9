package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// An installation elects by sessions or by leases, and records which: the two modes do
// not know each other's leaders. Package lease records and reads the same row, in
// transactions with the installation's lock.

const (
	tableExists = `SELECT pg_catalog.to_regclass($1) IS NOT NULL, ` + schema.RowSecurity
	replaceMode = `
INSERT INTO {installation} (mode) VALUES ($1)
ON CONFLICT (one) DO UPDATE SET mode = excluded.mode, since = clock_timestamp()`

	// A table of another program may have the name.
	holdsLeases = `
SELECT count(*) = 4
FROM pg_catalog.pg_attribute
WHERE attrelid = to_regclass($1) AND attname IN ('node_name', 'host', 'ended_at', 'expires_at')`

	// Ended permanently: otherwise a late heartbeat could renew them.
	endLeases  = `UPDATE %s SET ended_at = expires_at WHERE ended_at IS NULL AND expires_at <= 1000000 * extract(epoch FROM clock_timestamp())`
	liveLeases = `
SELECT node_name, host
FROM %s
WHERE ended_at IS NULL AND expires_at > 1000000 * extract(epoch FROM clock_timestamp())
ORDER BY node_name`
)

// CheckMode refuses an installation with elections by leases.
func (i *Installation) CheckMode(ctx context.Context, q link.Querier) error {
	mode, err := i.readMode(ctx, q)
	if err != nil {
		return err
	}
	return installation.Refuse(mode, installation.Sessions, i.Names.Schema, i.Names.Prefix)
}

// readMode reads the record; empty if there is none.
func (i *Installation) readMode(ctx context.Context, q link.Querier) (mode string, err error) {
	there, hidden := false, false
	if err := q.QueryRow(ctx, tableExists, i.Names.SQL("{installation}")).Scan(&there, &hidden); err != nil {
		return "", fmt.Errorf("read the installation's mode: %w", err)
	}
	if err := i.Schema.RefuseRowSecurity(hidden, "installation"); err != nil || !there {
		return "", err
	}
	err = i.Schema.ExplainMissing(ignoreNoRows(q.QueryRow(ctx, i.Names.SQL(installation.ReadMode)).Scan(&mode)), "installation")
	switch {
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return "", fmt.Errorf("%w: GRANT SELECT ON TABLE %s TO %s: %w", dberr.ErrPrivilege, i.Names.SQL("{installation}"), i.Names.Grantee, err)
	case err != nil:
		return "", fmt.Errorf("read the installation's mode: %w", err)
	}
	return mode, nil
}

func ignoreNoRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// SetMode is the method of the backend with this name.
func (i *Installation) SetMode(ctx context.Context, mode string) error {
	if mode != installation.Sessions && mode != installation.Leases {
		return invalidParameter("the mode is %q; it must be %s or %s", mode, installation.Sessions, installation.Leases)
	}
	conn, err := i.Connector.DialWith(ctx, "migration", nil, pgdial.Options{Pooled: true})
	if err != nil {
		return err
	}
	defer link.Discard(conn)
	if mode == installation.Leases { // outside the attempt: a refusal rolls it back
		if err := i.correct(ctx, conn); err != nil {
			return err
		}
	}
	doing := "change the mode to " + mode
	for deadline := time.Now().Add(installationWait); ; {
		changed, err := i.trySetMode(ctx, conn, mode, doing)
		if err != nil || changed {
			return err
		}
		if time.Now().After(deadline) {
			return i.inUse(ctx, conn, doing, nil)
		}
		if err := pauseForInstallation(ctx); err != nil {
			return err
		}
	}
}

// trySetMode makes one attempt, all in one transaction, since a pooler may use
// another server session for each transaction. It returns false if another session
// holds the lock.
func (i *Installation) trySetMode(ctx context.Context, conn *pgx.Conn, mode, doing string) (changed bool, err error) {
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('search_path', 'pg_catalog', true)`); err != nil {
			return err
		}
		first, second := installation.LockKey(i.Names.Schema, i.Names.Prefix)
		if err := tx.QueryRow(ctx, tryInstallationInTx, first, second).Scan(&changed); err != nil || !changed {
			return err
		}
		if err := i.refuseNodes(ctx, tx.Conn(), doing); err != nil {
			return err
		}
		leases, err := i.livingLeases(ctx, tx)
		if err != nil {
			return err
		}
		if len(leases) > 0 {
			return i.inUse(ctx, conn, doing, leases)
		}
		if _, err := tx.Exec(ctx, i.Names.SQL(installation.CreateMode)); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, i.Names.SQL(replaceMode), mode)
		return err
	})
	if err != nil {
		err = i.Names.Explain(doing, err)
	}
	return changed && err == nil, err
}

// executorQuerier is a connection or a transaction.
type executorQuerier interface {
	link.Querier
	link.Executor
}

// livingLeases lists the nodes of the installation with valid leases, and ends expired
// leases.
func (i *Installation) livingLeases(ctx context.Context, on executorQuerier) ([]string, error) {
	var living []string
	for _, table := range installation.SessionsOfLeases(i.Names.Prefix) {
		name := pgx.Identifier{i.Names.Schema, table}.Sanitize()
		var there bool
		if err := on.QueryRow(ctx, holdsLeases, name).Scan(&there); err != nil {
			return nil, fmt.Errorf("look for leases: %w", err)
		}
		if !there {
			continue
		}
		if _, err := on.Exec(ctx, fmt.Sprintf(endLeases, name)); err != nil {
			return nil, fmt.Errorf("end expired leases: %w", err)
		}
		rows, err := on.Query(ctx, fmt.Sprintf(liveLeases, name))
		if err != nil {
			return nil, fmt.Errorf("look for leases: %w", err)
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var node, host string
			err := row.Scan(&node, &host)
			return fmt.Sprintf("node %q on %q, by a lease", node, host), err
		})
		if err != nil {
			return nil, fmt.Errorf("look for leases: %w", err)
		}
		living = slices.Concat(living, found)
	}
	return living, nil
}
