package processor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Change is a change of a processor by an operator.
type Change struct {
	At        time.Time // by the database's clock
	By        string    // who made it
	Processor string
	Action    string // pause, resume, retry, rewind, rebuild, skip, replay, replay_failed, dismiss or repair
	Detail    string // for example the target of a rewind; often empty
}

// Changes returns the latest changes by operators, newest first, to one
// processor, or to all if name is empty.
func (m *Admin) Changes(ctx context.Context, name string, limit int) ([]Change, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	changes, err := collect(ctx, m.tables, "list changes", scanChange, listChanges, name, limit)
	if err == nil && len(changes) == 0 && name != "" {
		_, err = m.Show(ctx, name)
	}
	return changes, err
}

func scanChange(row pgx.CollectableRow) (c Change, err error) {
	return c, row.Scan(&c.At, &c.By, &c.Processor, &c.Action, &c.Detail)
}

func checkLimit(limit int) error {
	if limit < 1 {
		return invalid("the limit is %d; it must be at least 1", limit)
	}
	return nil
}
