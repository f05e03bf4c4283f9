package assign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// Config configures an assigner. Table is required.
type Config struct {
	// Table is the name of the table: {"jobs"} or {"app", "jobs"}.
	Table   pgx.Identifier
	Columns Columns
	States  States

	// Role is the role [Assigner.Run] campaigns for. Default: cluster.SchedulerRole. A
	// node has one election per role: if the node also runs a scheduler of package cron,
	// use another role for one of them, or lead both in one election with [Assigner.Lead].
	Role tenure.Role
	// WorkerRole is the node role a node needs to get rows. Default: cluster.Worker.
	WorkerRole cluster.NodeRole
	// MaxPerNode is the maximum number of unfinished rows, assigned or running,
	// of a node. Default 100.
	MaxPerNode int
	// MaxAttempts is how many times a row may be begun; after so many attempts, a pending
	// row becomes dead. Default 10.
	MaxAttempts int
	// BatchSize is the maximum number of rows assigned by one transaction, up to 10,000.
	// The transaction must finish within the trust window. Default 1000.
	BatchSize int
	// PollInterval is the time between two passes over the table without a
	// notification. Default 1 s.
	PollInterval time.Duration
}

// Columns are the names of the table's columns. All except Priority and
// CreatedAt are required.
type Columns struct {
	// ID identifies the row: any type, with a unique index. Default "id".
	ID string
	// State is one of [States], or any other text of yours for rows to leave alone. Text
	// or an enumeration, not null. Default "state".
	State string
	// Node is the id of the row's node, or null: uuid or text. Default "node_id".
	Node string
	// Capability is the capability a node needs to get the row; empty for none. Text, not
	// null. Default "capability".
	Capability string
	// Attempts counts how often the row was begun since it was added or replayed: an
	// integer, not null, default 0. An assignment taken back before the worker began does
	// not count. Default "attempts".
	Attempts string
	// Assignment is the number of the row's last assignment: a bigint, not null, default
	// 0. It increases with each one, and is at least the number of the leader's term. A
	// worker's UPDATE must compare it: then a node cannot finish a row after losing it.
	// Default "assignment".
	Assignment string

	// Priority, if set, names a column for the order of rows, largest first and null last.
	Priority string
	// CreatedAt, if set, names a column for the order of rows of the same priority,
	// smallest first. The last criterion is ID.
	CreatedAt string
}

// States are the texts of this package's states.
type States struct {
	Pending  string // waits to be assigned; default "pending"
	Assigned string // assigned to a node that has not begun; default "assigned"
	Running  string // begun by the node; default "running"
	Dead     string // failed too often; default "dead"
}

// defaultPollInterval is the default of PollInterval.
const defaultPollInterval = time.Second

func (c Config) withDefaults() Config {
	if c.Role == (tenure.Role{}) {
		c.Role = cluster.SchedulerRole
	}
	c.WorkerRole = cmp.Or(c.WorkerRole, cluster.Worker)
	c.MaxPerNode = cmp.Or(c.MaxPerNode, 100)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 10)
	c.BatchSize = cmp.Or(c.BatchSize, 1000)
	c.PollInterval = cmp.Or(c.PollInterval, defaultPollInterval)
	for _, text := range []struct {
		value    *string
		fallback string
	}{
		{&c.Columns.ID, "id"},
		{&c.Columns.State, "state"},
		{&c.Columns.Node, "node_id"},
		{&c.Columns.Capability, "capability"},
		{&c.Columns.Attempts, "attempts"},
		{&c.Columns.Assignment, "assignment"},
		{&c.States.Pending, "pending"},
		{&c.States.Assigned, "assigned"},
		{&c.States.Running, "running"},
		{&c.States.Dead, "dead"},
	} {
		*text.value = cmp.Or(*text.value, text.fallback)
	}
	return c
}

// columns returns the names of all used columns.
func (c Config) columns() []string {
	all := []string{c.Columns.ID, c.Columns.State, c.Columns.Node, c.Columns.Capability, c.Columns.Attempts, c.Columns.Assignment}
	for _, optional := range []string{c.Columns.Priority, c.Columns.CreatedAt} {
		if optional != "" {
			all = append(all, optional)
		}
	}
	return all
}

// validate checks a configuration after its defaults are set.
func (c Config) validate() error {
	const mostRows, mostAttempts = 10_000, 1_000_000
	states := []string{c.States.Pending, c.States.Assigned, c.States.Running, c.States.Dead}
	switch {
	case len(c.Table) < 1 || len(c.Table) > 2 || slices.Contains(c.Table, ""):
		return invalid("the table name %q must have one or two parts, such as pgx.Identifier{\"app\", \"jobs\"}", []string(c.Table))
	case slices.ContainsFunc(slices.Concat(c.Table, c.columns(), states), unusable):
		return invalid("the names of the table, its columns and states must be UTF-8 without zero bytes")
	case repeated(c.columns()):
		return invalid("two of the columns %q are the same", c.columns())
	case repeated(states):
		return invalid("two of the states %q are the same", states)
	case c.MaxPerNode < 1:
		return invalid("MaxPerNode is %d; it must be at least 1", c.MaxPerNode)
	case c.MaxAttempts < 1 || c.MaxAttempts > mostAttempts:
		return invalid("MaxAttempts is %d; it must be between 1 and %d", c.MaxAttempts, mostAttempts)
	case c.BatchSize < 1 || c.BatchSize > mostRows:
		return invalid("the batch size is %d; it must be between 1 and %d", c.BatchSize, mostRows)
	case c.PollInterval < time.Millisecond:
		return invalid("the poll interval is %v; it must be at least 1ms", c.PollInterval)
	}
	return c.Role.Validate()
}

func unusable(name string) bool { return !utf8.ValidString(name) || strings.ContainsRune(name, 0) }

func repeated(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) < len(names)
}

// invalid returns an error matching tenure.ErrInvalidConfig.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}
