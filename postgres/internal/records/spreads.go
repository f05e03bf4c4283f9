package records

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

// SaveSpread is the method of the backend with this name.
func (rs *Records) SaveSpread(ctx context.Context, name string, roles []byte, by uuid.UUID) error {
	return rs.Reader.Ask(ctx, "save a spread", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, rs.Names.SQL(saveSpread), name, string(roles), by)
		return err
	})
}

// Spreads is the method of the backend with this name.
func (rs *Records) Spreads(ctx context.Context) (map[string][]byte, error) {
	spreads := map[string][]byte{}
	err := rs.Reader.Ask(ctx, "read spreads", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, rs.Names.SQL(readSpreads))
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
