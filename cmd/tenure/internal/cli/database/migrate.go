// Package database has the commands on the database itself: its schema, its
// privileges, and what would break an election on it.
package database

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/connect"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/console"
)

const migrateLong = `Create the schema, or bring an older one up to date.

Nodes do this by themselves unless they run with --manual-migrations. Any number
of processes may do it at once.`

const migrateDownLong = `Undo migrations until the schema has the version given by --to.

Version 0 removes everything. No node may be running: if one is, the command
lists it and changes nothing. It asks for confirmation; --yes is for scripts.`

// migrateTimeout bounds a migration: it changes small tables only, but may wait
// for another process that migrates.
const migrateTimeout = 5 * time.Minute

// migrateCommand is what the commands about the schema have in common.
type migrateCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
}

// NewMigrate returns the command "tenure migrate".
func NewMigrate(out *console.Output) *cobra.Command {
	c := &migrateCommand{out: out}
	up := func(cmd *cobra.Command, _ []string) error {
		return c.change(cmd.Context(), func(ctx context.Context, b connect.Backend) error { return b.Migrate(ctx) })
	}
	cmd := &cobra.Command{Use: "migrate", Short: "Create or update the schema", Long: migrateLong, Args: console.NoArgs, RunE: up}
	c.database.Register(cmd.PersistentFlags())
	cmd.AddCommand(
		&cobra.Command{Use: "up", Short: "Create or update the schema", Long: migrateLong, Args: console.NoArgs, RunE: up},
		newMigrateDown(c),
		newMigrateMode(c),
		newMigrateGrants(c),
		&cobra.Command{
			Use: "print", Short: "Print SQL that creates the schema from nothing", Args: console.NoArgs,
			RunE: func(*cobra.Command, []string) error { return c.printSQL() },
		},
		&cobra.Command{
			Use: "version", Short: "Print the version of the schema in the database", Args: console.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return c.change(cmd.Context(), func(context.Context, connect.Backend) error { return nil })
			},
		},
	)
	return cmd
}

func newMigrateDown(c *migrateCommand) *cobra.Command {
	var target int
	cmd := &cobra.Command{
		Use: "down --to VERSION", Short: "Undo migrations", Long: migrateDownLong, Args: console.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("to") {
				return console.Usage("say with --to which version to go down to; 0 removes everything")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.change(cmd.Context(), func(ctx context.Context, b connect.Backend) error {
				return b.MigrateDown(ctx, target)
			})
		},
	}
	cmd.Flags().IntVar(&target, "to", 0, "the version to go down to; 0 removes everything")
	consent := &console.ConsentFlag{Out: c.out}
	consent.Guard(cmd, func([]string) string {
		if target == 0 {
			return fmt.Sprintf("Remove all tables with the prefix %s, and everything in them?", c.database.Prefix)
		}
		return fmt.Sprintf("Undo the migrations after version %d, and lose what only they can hold?", target)
	})
	return cmd
}

// SchemaRecord is the state of the schema as it is printed.
type SchemaRecord struct {
	Schema        string `json:"schema"`
	Prefix        string `json:"prefix"`
	SchemaVersion int    `json:"schema_version"` // 0 if there is none
}

// change does something to the schema and prints the version that it then has.
func (c *migrateCommand) change(ctx context.Context, do func(context.Context, connect.Backend) error) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return err
	}
	defer backend.Close()
	if err := do(ctx, backend); err != nil {
		return err
	}
	version, err := backend.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	record := SchemaRecord{c.database.Schema, c.database.Prefix, version}
	text := fmt.Sprintf("schema %s, prefix %s", record.Schema, record.Prefix)
	if _, ok := backend.(connect.Leases); ok {
		if !c.database.Flags.Changed("schema") {
			record.Schema = "" // where the connection leads
		}
		text = fmt.Sprintf("leases, prefix %s", record.Prefix)
	}
	if version == 0 {
		text += ": no tables"
	} else {
		text += fmt.Sprintf(": version %d", version)
	}
	return c.out.Print(record, text)
}

// printSQL prints the script that creates the schema.
func (c *migrateCommand) printSQL() error {
	return c.printScript(func(b connect.Backend) (string, error) { return b.MigrationSQL(), nil })
}

// printScript needs no connection, only names and the dialect.
func (c *migrateCommand) printScript(script func(connect.Backend) (string, error)) error {
	backend, err := c.database.Offline()
	if err != nil {
		return err
	}
	defer backend.Close()
	sql, err := script(backend)
	if err != nil {
		return err
	}
	if c.out.JSON() {
		return c.out.Print(map[string]string{"sql": sql}, "")
	}
	return c.out.WriteText(sql)
}
