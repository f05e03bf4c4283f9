package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
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
	out      *output
	database databaseFlags
}

func newMigrate(out *output) *cobra.Command {
	c := &migrateCommand{out: out}
	up := func(cmd *cobra.Command, _ []string) error {
		return c.change(cmd.Context(), func(ctx context.Context, b backend) error { return b.Migrate(ctx) })
	}
	cmd := &cobra.Command{Use: "migrate", Short: "Create or update the schema", Long: migrateLong, Args: noArgs, RunE: up}
	c.database.register(cmd.PersistentFlags())
	cmd.AddCommand(
		&cobra.Command{Use: "up", Short: "Create or update the schema", Long: migrateLong, Args: noArgs, RunE: up},
		newMigrateDown(c),
		newMigrateMode(c),
		newMigrateGrants(c),
		&cobra.Command{
			Use: "print", Short: "Print SQL that creates the schema from nothing", Args: noArgs,
			RunE: func(*cobra.Command, []string) error { return c.printSQL() },
		},
		&cobra.Command{
			Use: "version", Short: "Print the version of the schema in the database", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return c.change(cmd.Context(), func(context.Context, backend) error { return nil })
			},
		},
	)
	return cmd
}

func newMigrateDown(c *migrateCommand) *cobra.Command {
	var target int
	cmd := &cobra.Command{
		Use: "down --to VERSION", Short: "Undo migrations", Long: migrateDownLong, Args: noArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("to") {
				return usage("say with --to which version to go down to; 0 removes everything")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.change(cmd.Context(), func(ctx context.Context, b backend) error {
				return b.MigrateDown(ctx, target)
			})
		},
	}
	cmd.Flags().IntVar(&target, "to", 0, "the version to go down to; 0 removes everything")
	consent := &consentFlag{out: c.out}
	consent.guard(cmd, func([]string) string {
		if target == 0 {
			return fmt.Sprintf("Remove all tables with the prefix %s, and everything in them?", c.database.prefix)
		}
		return fmt.Sprintf("Undo the migrations after version %d, and lose what only they can hold?", target)
	})
	return cmd
}

// schemaRecord is the state of the schema as it is printed.
type schemaRecord struct {
	Schema        string `json:"schema"`
	Prefix        string `json:"prefix"`
	SchemaVersion int    `json:"schema_version"` // 0 if there is none
}

// change does something to the schema and prints the version that it then has.
func (c *migrateCommand) change(ctx context.Context, do func(context.Context, backend) error) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	backend, err := c.database.open(ctx, false)
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
	record := schemaRecord{c.database.schema, c.database.prefix, version}
	text := fmt.Sprintf("schema %s, prefix %s", record.Schema, record.Prefix)
	if _, ok := backend.(leases); ok {
		if !c.database.flags.Changed("schema") {
			record.Schema = "" // where the connection leads
		}
		text = fmt.Sprintf("leases, prefix %s", record.Prefix)
	}
	if version == 0 {
		text += ": no tables"
	} else {
		text += fmt.Sprintf(": version %d", version)
	}
	return c.out.print(record, text)
}

// printSQL prints the script that creates the schema.
func (c *migrateCommand) printSQL() error {
	return c.printScript(func(b backend) (string, error) { return b.MigrationSQL(), nil })
}

// printScript needs no connection, only names and the dialect.
func (c *migrateCommand) printScript(script func(backend) (string, error)) error {
	backend, err := c.database.offline()
	if err != nil {
		return err
	}
	defer backend.Close()
	sql, err := script(backend)
	if err != nil {
		return err
	}
	if c.out.json() {
		return c.out.print(map[string]string{"sql": sql}, "")
	}
	return c.out.write(sql)
}
