package assign

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
)

// Config says which table's rows are assigned, and how. Table must be set.
type Config struct {
	// Table is the table: {"jobs"} or {"app", "jobs"}.
	Table   pgx.Identifier
	Columns Columns
	States  States

	// Role is what [Assigner.Run] stands for. Default cluster.SchedulerRole. A
	// node stands for a role once: beside a scheduler of package cron give one of
	// them a role of its own, or lead both in one election by [Assigner.Lead].
	Role tenure.Role
	// WorkerRole is the role that a node must have to be given rows. Default
	// cluster.Worker.
	WorkerRole cluster.NodeRole
	// MaxPerNode is the most unfinished rows, assigned or running, that a node
	// is given. Default 100.
	MaxPerNode int
	// MaxAttempts is how many times a row may be begun; a pending row that was
	// begun as often becomes dead. Default 10.
	MaxAttempts int
	// BatchSize is the most rows that one transaction assigns, up to 10,000; it
	// must be done with them while a term can be trusted without a heartbeat.
	// Default 1000.
	BatchSize int
	// PollInterval is the time between two looks at the table while no news
	// comes. Default 1 s.
	PollInterval time.Duration
}

// Columns are the names of the table's columns. All but Priority and CreatedAt
// must be there.
type Columns struct {
	// ID identifies the row: any type, with a unique index. Default "id".
	ID string
	// State is one of [States], or any other of yours that leaves the row alone.
	// Text or an enumeration, not null. Default "state".
	State string
	// Node is the id of the node that has the row, null if none has it: uuid or
	// text. Default "node_id".
	Node string
	// Capability is what a node must have to be given the row; the empty text
	// asks for none. Text, not null. Default "capability".
	Capability string
	// Attempts counts how often the row was begun since it was added or
	// replayed: an integer, not null, default 0. An assignment that was taken
	// back before the worker began does not count. Default "attempts".
	Attempts string
	// Assignment counts the row's assignments and never falls: a bigint, not
	// null, default 0. It is what a worker's UPDATE must compare, so that a node
	// that lost the row cannot finish it. Default "assignment".
	Assignment string

	// Priority, if set, names a column by which rows go first, the largest
	// before the others and null last.
	Priority string
	// CreatedAt, if set, names a column by which, among rows of the same
	// priority, the smallest goes first. ID decides last.
	CreatedAt string
}

// States are the texts of the states that matter here.
type States struct {
	Pending  string // to be assigned; default "pending"
	Assigned string // given to a node, which has not begun; default "assigned"
	Running  string // begun by the node; default "running"
	Dead     string // failed too often; default "dead"
}

// defaultPollInterval is that of the configuration.
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

// columns are the names of all columns that are used.
func (c Config) columns() []string {
	all := []string{c.Columns.ID, c.Columns.State, c.Columns.Node, c.Columns.Capability, c.Columns.Attempts, c.Columns.Assignment}
	for _, optional := range []string{c.Columns.Priority, c.Columns.CreatedAt} {
		if optional != "" {
			all = append(all, optional)
		}
	}
	return all
}

// validate checks a configuration that has its defaults.
func (c Config) validate() error {
	const mostRows, mostAttempts = 10_000, 1_000_000
	states := []string{c.States.Pending, c.States.Assigned, c.States.Running, c.States.Dead}
	switch {
	case len(c.Table) < 1 || len(c.Table) > 2 || slices.Contains(c.Table, ""):
		return invalid("the table %q must be named by one or two parts, as pgx.Identifier{\"app\", \"jobs\"}", []string(c.Table))
	case slices.ContainsFunc(slices.Concat(c.Table, c.columns(), states), unusable):
		return invalid("the names of the table, its columns and states must be UTF-8 without zero bytes")
	case repeated(c.columns()):
		return invalid("two of the columns %q are the same", c.columns())
	case repeated(states):
		return invalid("two of the states %q are the same", states)
	case c.MaxPerNode < 1:
		return invalid("the most rows of a node are %d; the least is 1", c.MaxPerNode)
	case c.MaxAttempts < 1 || c.MaxAttempts > mostAttempts:
		return invalid("the most attempts of a row are %d; it must be between 1 and %d", c.MaxAttempts, mostAttempts)
	case c.BatchSize < 1 || c.BatchSize > mostRows:
		return invalid("the batch size is %d; it must be between 1 and %d", c.BatchSize, mostRows)
	case c.PollInterval < time.Millisecond:
		return invalid("the poll interval is %v; the least is 1ms", c.PollInterval)
	}
	return c.Role.Validate()
}

func unusable(name string) bool { return !utf8.ValidString(name) || strings.ContainsRune(name, 0) }

func repeated(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) < len(names)
}

// invalid reports something that cannot be used.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tenure.ErrInvalidConfig, fmt.Sprintf(format, args...))
}

// lockKey is the key of the lock that every transaction of an assigner of this
// table shares: the first eight bytes of a SHA-256.
func (c Config) lockKey() int64 {
	sum := sha256.Sum256([]byte("tenure assign\x00" + c.Table.Sanitize()))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
