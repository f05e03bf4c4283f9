package database

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

const migrateGrantsLong = `Print the GRANT statements for a database user that does not own the schema. They are
not executed.

Without other flags, they are the privileges of a node. With --application, they are for
a program that only fences its transactions; --node-user may then terminate them. With
--work or --compaction, they are privileges that a node's user needs in addition, on the
tables of features: those in the database, or those that --feature names. The user of
tenure serve needs the privileges of a node, and --work --compaction.`

const migrateGrantsExample = `  tenure migrate grants --user app
  tenure migrate grants --user app --work --compaction | psql
  tenure migrate grants --user app --work --feature schedules`

// grantsCommand prints the necessary privileges of a database user.
type grantsCommand struct {
	*migrateCommand

	user        string
	application bool
	nodeUsers   []string
	work        bool
	compaction  bool
	features    []string
}

func newMigrateGrants(migrate *migrateCommand) *cobra.Command {
	c := &grantsCommand{migrateCommand: migrate}
	cmd := &cobra.Command{
		Use: "grants --user NAME", Short: "Print the privileges that a database user needs", Args: console.NoArgs,
		Long: migrateGrantsLong, Example: migrateGrantsExample,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.user, "user", "", "`name` of the database user")
	flags.BoolVar(&c.application, "application", false, "for an application that fences its transactions but runs no node")
	flags.StringSliceVar(&c.nodeUsers, "node-user", nil, "with --application, the `name` of the nodes' database user; repeatable")
	flags.BoolVar(&c.work, "work", false, "privileges for schedules, processors, samples and alerts, in addition to a node's")
	flags.BoolVar(&c.compaction, "compaction", false, "for the leader of log-compactor: what it needs in addition to a node's privileges to roll up the history")
	flags.StringSliceVar(&c.features, "feature", nil, "with --work or --compaction, the `feature` whose tables to include, or all; repeatable; default those in the database")
	return cmd
}

func (c *grantsCommand) run(ctx context.Context) error {
	switch {
	case c.user == "":
		return console.Usage("--user must name the database user")
	case c.application && c.work:
		return console.Usage("--work includes --application: use only --work")
	case c.application && c.compaction:
		return console.Usage("--compaction includes --application: use only --compaction")
	case len(c.nodeUsers) > 0 && !c.application:
		return console.Usage("--node-user requires --application")
	case len(c.features) > 0 && !c.work && !c.compaction:
		return console.Usage("--feature requires --work or --compaction")
	}
	return c.printScript(func(b connect.Backend) (string, error) {
		switch b := b.(type) {
		case *postgres.Backend:
			return c.ofSessions(ctx, b)
		case connect.Leases:
			return c.ofLeases(b)
		default:
			panic(fmt.Sprintf("a backend of type %T", b))
		}
	})
}

// ofLeases returns the requested statements for leases.
func (c *grantsCommand) ofLeases(b connect.Leases) (string, error) {
	switch {
	case len(c.nodeUsers) > 0:
		return "", console.Usage("only nodes on PostgreSQL without tenure_mode=lease terminate transactions: omit --node-user")
	case c.application:
		return b.ApplicationGrants(c.user)
	case c.work:
		return "", console.Usage("schedules and processors need PostgreSQL without tenure_mode=lease")
	case c.compaction:
		return "", console.Usage("only PostgreSQL without tenure_mode=lease has a history")
	}
	return b.NodeGrants(c.user)
}

// ofSessions returns the requested statements, each once.
func (c *grantsCommand) ofSessions(ctx context.Context, b *postgres.Backend) (string, error) {
	switch {
	case c.application && len(c.nodeUsers) == 0:
		return "", console.Usage("--application requires --node-user: nodes must be able to terminate the application's transactions")
	case c.application:
		return b.ApplicationGrants(c.user, c.nodeUsers...), nil
	case !c.work && !c.compaction:
		return b.NodeGrants(c.user), nil
	}
	features, err := c.used(ctx)
	if err != nil {
		return "", err
	}
	var scripts string
	for _, of := range []struct {
		wanted bool
		grants func(user string, features ...string) (string, error)
	}{{c.work, b.WorkGrants}, {c.compaction, b.CompactionGrants}} {
		if !of.wanted {
			continue
		}
		script, err := of.grants(c.user, features...)
		if err != nil {
			return "", err
		}
		scripts += script
	}
	var statements []string
	for statement := range strings.Lines(scripts) {
		if !slices.Contains(statements, statement) {
			statements = append(statements, statement)
		}
	}
	return strings.Join(statements, ""), nil
}

// used returns the requested features or, without a request, the features in the
// database.
func (c *grantsCommand) used(ctx context.Context) ([]string, error) {
	if len(c.features) > 0 {
		return c.features, nil
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("the features in the database; --feature names some without a database: %w", err)
	}
	defer backend.Close()
	versions, err := versionsOf(ctx, backend)
	if err != nil {
		return nil, err
	}
	var used []string
	for _, v := range versions {
		if v.Version > 0 && v.Newest > 0 {
			used = append(used, v.Feature)
		}
	}
	return used, nil
}
