package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// All nodes of a set save the same definition: the first one writes the row.
	saveSpread = `
INSERT INTO {spreads} AS s (name, roles, updated_by)
VALUES ($1, $2::jsonb, $3)
ON CONFLICT (name) DO UPDATE
SET roles = excluded.roles, updated_at = clock_timestamp(), updated_by = excluded.updated_by
WHERE s.roles <> excluded.roles`

	readSpreads = `SELECT name, roles::text FROM {spreads}`
)

// SaveSpread records the definition of a set of roles that nodes share, a JSON
// document, for programs that plan without being a node. It is safe for concurrent
// use.
func (b *Backend) SaveSpread(ctx context.Context, name string, roles []byte, by uuid.UUID) error {
	return b.reader.Ask(ctx, "save a spread", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, b.names.SQL(saveSpread), name, string(roles), by)
		return err
	})
}

// Spreads returns the saved definitions by name. It is safe for concurrent use.
func (b *Backend) Spreads(ctx context.Context) (map[string][]byte, error) {
	spreads := map[string][]byte{}
	err := b.reader.Ask(ctx, "read spreads", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, b.names.SQL(readSpreads))
		if err != nil {
			return err
		}
		var name, roles string
		_, err = pgx.ForEachRow(rows, []any{&name, &roles}, func() error {
			spreads[name] = []byte(roles)
			return nil
		})
		return err
	})
	return spreads, err
}
