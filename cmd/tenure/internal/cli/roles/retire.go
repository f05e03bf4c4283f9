package roles

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/flagvalue"
	"github.com/exactly-one/tenure/postgres"
)

const retireLong = `Mark a role as retired, for example after it was renamed: it is no longer shown as
vacant, and no alert fires because it has no leader.

Its history and its term numbers remain. If a node leads it again, it is a normal
role. A role with a leader is refused with exit code 2: first stop its candidates.

With --match it retires every vacant role whose name matches a pattern: * matches any
characters and ? matches one. It lists them and asks for confirmation first; with
--dry-run it only lists them. Roles with a leader stay.`

// retireCommand marks roles as retired.
type retireCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
	roles    flagvalue.RoleFlags
	match    string
	dryRun   bool
	yes      bool
}

// NewRetire returns the command "tenure retire".
func NewRetire(out *console.Output) *cobra.Command {
	c := &retireCommand{out: out}
	cmd := &cobra.Command{
		Use:     "retire --role NAME | --match PATTERN",
		Short:   "Mark roles as retired",
		Long:    retireLong,
		Example: "  tenure retire --role billing-old\n  tenure retire --match 'worker-*' --dry-run",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.roles.RegisterSingle(cmd.Flags(), "retire")
	c.database.Register(cmd.Flags())
	cmd.Flags().StringVar(&c.match, "match", "", "retire the vacant roles whose names match this `pattern`, with * and ?")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "with --match: only list the roles")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "with --match: proceed without confirmation")
	return cmd
}

// retiredRecord is the printed result for one role.
type retiredRecord struct {
	Retired string `json:"retired"`
}

func (c *retireCommand) run(cmd *cobra.Command) error {
	matching := cmd.Flags().Changed("match")
	roles, err := c.namedRoles(matching)
	if err != nil {
		return err
	}
	if err := c.database.RequireSessions(cmd.CommandPath()); err != nil {
		return err
	}
	opened, err := c.database.Open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer opened.Close()
	backend := opened.(*postgres.Backend)
	if matching {
		return c.retireMatching(cmd, backend)
	}
	role := roles[0]
	err = backend.Retire(cmd.Context(), role.Name(), connect.WhoAsks())
	switch {
	case errors.Is(err, dberr.ErrUnknownRole):
		return unknownRole(cmd.Context(), backend, role.Name(), err)
	case errors.Is(err, dberr.ErrHasLeader):
		return console.Usage("%w", err)
	case err != nil:
		return err
	}
	return c.out.Print(retiredRecord{role.Name()}, role.Name()+" is retired")
}

// namedRoles returns the role to retire, or none if the command names a pattern.
func (c *retireCommand) namedRoles(matching bool) ([]tenure.Role, error) {
	roles, err := c.roles.Roles()
	switch {
	case err != nil:
		return nil, err
	case matching && len(roles) > 0:
		return nil, console.Usage("name a role or use --match, not both")
	case matching && c.match == "":
		return nil, console.Usage("--match is empty")
	case !matching && (c.dryRun || c.yes):
		return nil, console.Usage("--dry-run and --yes require --match")
	case !matching:
		_, err = c.roles.Single()
	}
	return roles, err
}
