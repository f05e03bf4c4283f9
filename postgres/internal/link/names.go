package link

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/sqlstate"
)

// Names are the names of the objects and notification channels of an installation.
type Names struct {
	schema.Names
	Schema, Prefix string
	Grantee        string // the quoted user
}

// NewNames returns the names of the installation in a schema with a prefix, for a user.
func NewNames(schemaName, prefix, user string) Names {
	return Names{schema.NewNames(schemaName, prefix), schemaName, prefix, pgx.Identifier{user}.Sanitize()}
}

// ElectionsChannel is for notifications of possible changes of elections.
func (n Names) ElectionsChannel() string { return n.Channel("") }

// NodesChannel is for notifications of joined nodes and changed descriptions. Neither
// makes a role vacant.
func (n Names) NodesChannel() string { return n.Channel("nodes") }

// Explain returns an error of a call in the form for its caller.
func (n Names) Explain(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tenure.ErrTenure): // it already describes the failure
		return fmt.Errorf("%s: %w", doing, err)
	case sqlstate.Has(err, sqlstate.UndefinedTable), sqlstate.Has(err, sqlstate.InvalidSchema):
		return fmt.Errorf("%w: %s: there are no tables in schema %q with prefix %q; a node creates them, or tenure migrate: %w",
			dberr.ErrSchema, doing, n.Schema, n.Prefix, err)
	case sqlstate.Has(err, sqlstate.UndefinedColumn), sqlstate.Has(err, sqlstate.UndefinedFunction):
		return fmt.Errorf("%w: %s: it is older than this program; a node brings it up to date, or a migration: %w",
			dberr.ErrSchema, doing, err)
	case sqlstate.Has(err, sqlstate.InsufficientPrivilege):
		return fmt.Errorf("%w: %s%s: %w", dberr.ErrPrivilege, sqlstate.Grant(err, n.Grantee), doing, err)
	case sqlstate.Has(err, sqlstate.ReadOnlyTransaction):
		return fmt.Errorf("%w: %s: %w", dberr.ErrReadOnly, doing, err)
	case sqlstate.Has(err, sqlstate.Untranslatable): // no role or node has such a name here
		return fmt.Errorf("%w: %s: %w", tenure.ErrInvalidConfig, doing, err)
	default:
		return fmt.Errorf("%w: %s: %w", tenure.ErrConnection, doing, err)
	}
}

// The payload of a notification names the possible change: RolesOnly for roles, the id of
// a node for one node, any other text for every node.
const (
	RolesOnly = "roles"
	AnyNode   = ""
)

// Notify sends a notification: to a channel, with a payload.
const Notify = `SELECT pg_notify($1, $2)`
