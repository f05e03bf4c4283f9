package retention

import (
	"context"

	"github.com/exactly-one/tenure/internal/sweeps"
	"github.com/exactly-one/tenure/postgres"
)

// Status is the state of the retention of one kind of rows, as the last compactor recorded
// it.
type Status = sweeps.Status

// List returns the state of each kind of rows a compactor has searched for, sorted by its
// name. It returns none if no compactor has ever run. The database user needs the
// privileges of [postgres.Backend.WorkGrants].
func List(ctx context.Context, backend *postgres.Backend, database postgres.Database) ([]Status, error) {
	return sweeps.List(ctx, backend, database)
}
