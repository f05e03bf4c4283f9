package install

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

const (
	// A fenced transaction of the last term keeps the row locked; the wait for it is
	// bounded.
	limitRekey  = `SELECT set_config('lock_timeout', '2s', true)`
	readRoleKey = `
SELECT
    t.lock_key,
    coalesce((SELECT l.node_name FROM {leaders} l WHERE l.role = t.role AND l.lease_until > clock_timestamp()), '')
FROM {terms} t
WHERE t.role = $1`
	// The locks are acquired before the row: a candidate with one of them waits for the
	// row, and ends sessions in its way.
	lockRoleKeys = `
SELECT bool_and(CASE
    WHEN key LIKE '%:%' THEN pg_try_advisory_xact_lock(split_part(key, ':', 1)::integer, split_part(key, ':', 2)::integer)
    ELSE pg_try_advisory_xact_lock(key::bigint)
END)
FROM unnest($1::text[]) key`
	lockRoleRow  = `SELECT lock_key = $2 FROM {terms} WHERE role = $1 FOR NO KEY UPDATE`
	readKeyOwner = `SELECT role FROM {terms} WHERE lock_key = $1 AND role <> $2`
	// The trigger of the table acquires the locks of both keys again.
	writeRoleKey = `UPDATE {terms} SET lock_key = $2 WHERE role = $1`
)

// Rekey is the method of the backend with this name.
func (i *Installation) Rekey(ctx context.Context, role tenure.Role) (before, after string, err error) {
	if err := role.Validate(); err != nil {
		return "", "", err
	}
	err = i.Reader.Ask(ctx, "change the key of a role", func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
			before, after, err = i.rekey(ctx, tx, role)
			return err
		})
	})
	return before, after, err
}

func (i *Installation) rekey(ctx context.Context, tx pgx.Tx, role tenure.Role) (before, after string, err error) {
	var (
		id     uuid.UUID
		leader string
	)
	if _, err := tx.Exec(ctx, limitRekey); err != nil {
		return "", "", err
	}
	if err := tx.QueryRow(ctx, i.Names.SQL(ReadInstallation)).Scan(&id); err != nil {
		return "", "", err
	}
	key := role.LockKey(id).String()
	err = tx.QueryRow(ctx, i.Names.SQL(readRoleKey), role.Name()).Scan(&before, &leader)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", "", fmt.Errorf("%w: %s", dberr.ErrUnknownRole, role)
	case err != nil:
		return "", "", rekeyError(role, err)
	case before == key:
		return before, key, nil
	case leader != "":
		return "", "", fmt.Errorf("%w: %s leads %s; stop its candidates first", dberr.ErrHasLeader, leader, role)
	}
	var owner string
	switch err := tx.QueryRow(ctx, i.Names.SQL(readKeyOwner), key, role.Name()).Scan(&owner); {
	case err == nil:
		return "", "", KeyTaken(role, key, owner)
	case !errors.Is(err, pgx.ErrNoRows):
		return "", "", err
	}
	if err := i.lockForRekey(ctx, tx, role, before, key); err != nil {
		return "", "", err
	}
	_, err = tx.Exec(ctx, i.Names.SQL(writeRoleKey), role.Name(), key)
	return before, key, rekeyError(role, err)
}

// lockForRekey acquires the locks of both keys and the row of the role until the commit.
// So no session holds either lock, and none begins a term in the meantime.
func (i *Installation) lockForRekey(ctx context.Context, tx pgx.Tx, role tenure.Role, before, after string) error {
	var free, unchanged bool
	if err := tx.QueryRow(ctx, lockRoleKeys, []string{before, after}).Scan(&free); err != nil {
		return err
	}
	if !free {
		return errRoleLocked(role)
	}
	if err := tx.QueryRow(ctx, i.Names.SQL(lockRoleRow), role.Name(), before).Scan(&unchanged); err != nil {
		return rekeyError(role, err)
	}
	if !unchanged {
		return fmt.Errorf("%w: the key of %s has just changed; retry", dberr.ErrBusy, role)
	}
	return nil
}

// rekeyError explains the lock on the row, or the holder of one of the two locks.
func rekeyError(role tenure.Role, err error) error {
	switch {
	case sqlstate.Has(err, sqlstate.ObjectInUse):
		return errRoleLocked(role)
	case sqlstate.Has(err, sqlstate.LockNotAvailable):
		return fmt.Errorf("%w: a transaction has locked the row of %s; retry when it has ended", dberr.ErrBusy, role)
	}
	return err
}

func errRoleLocked(role tenure.Role) error {
	return fmt.Errorf("%w: a session holds the lock of the old or of the new key of %s; tenure status shows it", dberr.ErrHasLeader, role)
}

// KeyTaken is the error for a key of another role.
func KeyTaken(role tenure.Role, key, owner string) error {
	return fmt.Errorf("%w: %s cannot have the key %s, which is that of the role %s: two roles with one key would be two names for one lock; use that role, or another key",
		tenure.ErrKeyMismatch, role, key, owner)
}
