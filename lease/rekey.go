package lease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Rekey records the lock key of role under its name, and returns the recorded keys before
// and after the call, as N or A:B. The role must have no leader. Nodes may run, because
// the row of a role decides which node leads, not its key. A candidate with another key
// than the recorded one gets ErrKeyMismatch.
//
// The error matches dberr.ErrHasLeader if a node leads the role or is about to,
// dberr.ErrUnknownRole if no node has ever been a candidate for the role here, and
// tenure.ErrKeyMismatch if another role has the key.
func (b *Backend) Rekey(ctx context.Context, role tenure.Role) (before, after string, err error) {
	if err := role.Validate(); err != nil {
		return "", "", err
	}
	err = b.db.InTx(ctx, "change the key of a role", func(ctx context.Context, on sqldb.Querier) error {
		before, after, err = b.rekey(ctx, on, role)
		return err
	})
	return before, after, err
}

func (b *Backend) rekey(ctx context.Context, on sqldb.Querier, role tenure.Role) (before, after string, err error) {
	// To acquire the role, a session locks its row too, and then compares the key.
	err = sqldb.InLists(b.db.Dialect, b.sql(waitForRowsQuery), []string{role.Name()}, nil, func(query string, args []any) error {
		return sqldb.ForEach(ctx, on, query, func(*sql.Rows) error { return nil }, args...)
	})
	if err != nil {
		return "", "", err
	}
	var (
		known         bool
		leader, owner string
		key           = keyOf(role)
	)
	err = sqldb.ForEach(ctx, on, b.sql(lockKeyQuery), func(rows *sql.Rows) error {
		known = true
		return rows.Scan(&before, &leader, &owner)
	}, key, role.Name())
	switch {
	case err != nil:
		return "", "", err
	case !known:
		return "", "", fmt.Errorf("%w: %s", dberr.ErrUnknownRole, role)
	case before == key:
		return before, key, nil
	case leader != "":
		return "", "", fmt.Errorf("%w: %s leads %s; stop its candidates first", dberr.ErrHasLeader, leader, role)
	case owner != "":
		return "", "", fmt.Errorf("%w: %s cannot have the key %s, which is that of the role %s", tenure.ErrKeyMismatch, role, key, owner)
	}
	return before, key, sqldb.Exec(ctx, on, b.sql(rekeyQuery), key, role.Name())
}
