package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
	"github.com/exactly-one/tenure/postgres"
)

const migrateGrantsLong = `Print the GRANT statements for a database user under which nodes run and which
does not own the schema; with --application, --work or --compaction those of
another user, or those that such a node's user needs besides. They are not
executed.

A user of tenure serve needs all: those of a node, and --work --compaction.`

const migrateGrantsExample = `  tenure migrate grants --user app
  tenure migrate grants --user app --work --compaction | psql`

// grantsCommand prints what a database user must be allowed to do.
type grantsCommand struct {
	*migrateCommand

	user        string
	application bool
	work        bool
	compaction  bool
}

func newMigrateGrants(migrate *migrateCommand) *cobra.Command {
	c := &grantsCommand{migrateCommand: migrate}
	cmd := &cobra.Command{
		Use: "grants --user NAME", Short: "Print the privileges that a database user needs", Args: console.NoArgs,
		Long: migrateGrantsLong, Example: migrateGrantsExample,
		RunE: func(*cobra.Command, []string) error { return c.run() },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.user, "user", "", "the database user")
	flags.BoolVar(&c.application, "application", false, "for an application that fences its transactions and runs no node")
	flags.BoolVar(&c.work, "work", false, "for schedules, processors, samples and alerts: what they need beside a node's privileges, and what managing them needs")
	flags.BoolVar(&c.compaction, "compaction", false, "for the leader of log-compactor: what it needs beside a node's privileges to keep the history short")
	return cmd
}

func (c *grantsCommand) run() error {
	switch {
	case c.user == "":
		return console.Usage("say with --user which database user the privileges are for")
	case c.application && c.work:
		return console.Usage("--work includes --application: give one of them")
	case c.application && c.compaction:
		return console.Usage("--compaction includes --application: give one of them")
	}
	return c.printScript(func(b connect.Backend) (string, error) {
		switch b := b.(type) {
		case *postgres.Backend:
			return c.ofSessions(b), nil
		case connect.Leases:
			switch {
			case c.application:
				return b.ApplicationGrants(c.user)
			case c.work:
				return "", console.Usage("schedules and processors need PostgreSQL without tenure_mode=lease")
			case c.compaction:
				return "", console.Usage("a history is kept on PostgreSQL without tenure_mode=lease only")
			}
			return b.Grants(c.user)
		default:
			panic(fmt.Sprintf("a backend of type %T", b))
		}
	})
}

// ofSessions returns the statements for what is asked for, each once.
func (c *grantsCommand) ofSessions(b *postgres.Backend) string {
	if c.application {
		return b.ApplicationGrants(c.user)
	}
	var scripts string
	if c.work {
		scripts += b.WorkGrants(c.user)
	}
	if c.compaction {
		scripts += b.CompactionGrants(c.user)
	}
	if scripts == "" {
		return b.NodeGrants(c.user)
	}
	var statements []string
	for statement := range strings.Lines(scripts) {
		if !slices.Contains(statements, statement) {
			statements = append(statements, statement)
		}
	}
	return strings.Join(statements, "")
}
