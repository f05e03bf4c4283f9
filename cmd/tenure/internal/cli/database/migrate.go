// Package database has the commands on the database itself: its schema, its privileges,
// and the obstacles to an election on it.
package database

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

const migrateLong = `Create or update the schema: the tables of elections and of the cluster, and with
--feature those of other features.

Programs without --manual-migrations need no such command: their nodes create the
tables of elections and of the cluster, and the first use of a feature creates its
tables. tenure migrate status lists the features. Any number of processes may migrate
at the same time.`

const migrateDownLong = `Undo migrations down to the version given by --to.

Version 0 removes everything. No node may be running: if one is, the command
lists it and changes nothing. It asks for confirmation; in scripts, use --yes.`

const featureHelp = "also create the tables of this `feature` and of those that it needs, or of all; repeatable"

// migrateTimeout limits a migration: it changes only small tables, but may wait for
// another migrating process.
const migrateTimeout = 5 * time.Minute

// migrateCommand is the common part of the commands about the schema.
type migrateCommand struct {
	out      *console.Output
	database connect.DatabaseFlags
}

// NewMigrate returns the command "tenure migrate".
func NewMigrate(out *console.Output) *cobra.Command {
	c := &migrateCommand{out: out}
	var features []string
	up := func(cmd *cobra.Command, _ []string) error {
		return c.change(cmd.Context(), migrateUp(features))
	}
	cmd := &cobra.Command{Use: "migrate", Short: "Create or update the schema", Long: migrateLong, Args: console.NoArgs, RunE: up}
	c.database.Register(cmd.PersistentFlags())
	upCommand := &cobra.Command{Use: "up", Short: "Create or update the schema", Long: migrateLong, Args: console.NoArgs, RunE: up}
	upCommand.Flags().StringSliceVar(&features, "feature", nil, featureHelp)
	cmd.AddCommand(
		upCommand,
		newMigrateDown(c),
		newMigrateMode(c),
		newMigrateGrants(c),
		newMigratePrint(c),
		newMigrateRepair(c),
		newMigrateStatus(c),
		&cobra.Command{
			Use: "version", Short: "Print the version of the schema in the database", Args: console.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return c.change(cmd.Context(), func(context.Context, connect.Backend) error { return nil })
			},
		},
	)
	return cmd
}

func newMigratePrint(c *migrateCommand) *cobra.Command {
	var features []string
	cmd := &cobra.Command{
		Use: "print", Short: "Print SQL that creates the schema from nothing", Args: console.NoArgs,
		Long: "Print SQL that creates the tables of elections and of the cluster from nothing. With\n" +
			"--feature, print SQL that creates the missing tables of the feature.",
		RunE: func(*cobra.Command, []string) error { return c.printSQL(features) },
	}
	cmd.Flags().StringSliceVar(&features, "feature", nil, "print only the tables of this `feature` and of those that it needs; core adds those of elections and of the cluster; all prints everything; repeatable")
	return cmd
}

// migrateUp returns the function that brings a schema up to date.
func migrateUp(features []string) func(context.Context, connect.Backend) error {
	return func(ctx context.Context, backend connect.Backend) error {
		switch b := backend.(type) {
		case *postgres.Backend:
			return b.Migrate(ctx, features...)
		case connect.Leases:
			if len(features) > 0 {
				return errLeaseFeature
			}
			return b.Migrate(ctx)
		default:
			panic(fmt.Sprintf("a backend of type %T", b))
		}
	}
}

var errLeaseFeature = console.Usage("features need PostgreSQL without tenure_mode=lease; here are leases")

func newMigrateDown(c *migrateCommand) *cobra.Command {
	var target int
	var feature string
	cmd := &cobra.Command{
		Use: "down --to VERSION", Short: "Undo migrations", Long: migrateDownLong, Args: console.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("to") {
				return console.Usage("use --to VERSION to name the version to go down to; 0 removes everything")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.change(cmd.Context(), func(ctx context.Context, backend connect.Backend) error {
				switch b := backend.(type) {
				case *postgres.Backend:
					return b.MigrateDown(ctx, feature, target)
				case connect.Leases:
					if cmd.Flags().Changed("feature") {
						return errLeaseFeature
					}
					return b.MigrateDown(ctx, target)
				default:
					panic(fmt.Sprintf("a backend of type %T", b))
				}
			})
		},
	}
	cmd.Flags().IntVar(&target, "to", 0, "the `version` to go down to; 0 removes everything; required")
	cmd.Flags().StringVar(&feature, "feature", schema.Core, "the `feature` whose migrations to undo")
	consent := &console.ConsentFlag{Out: c.out}
	consent.Guard(cmd, func([]string) string {
		switch {
		case target != 0:
			return fmt.Sprintf("Undo the migrations of %s after version %d, and delete the data that needs them?", feature, target)
		case feature == schema.Core || feature == schema.All:
			return fmt.Sprintf("Remove all tables with the prefix %s, and everything in them?", c.database.Prefix)
		}
		return fmt.Sprintf("Remove the tables of %s with the prefix %s, and everything in them?", feature, c.database.Prefix)
	})
	return cmd
}

// SchemaRecord is the state of the schema as printed.
type SchemaRecord struct {
	Schema        string `json:"schema"`
	Prefix        string `json:"prefix"`
	SchemaVersion int    `json:"schema_version"` // of the core; 0 if there is none

	Features []FeatureRecord `json:"features,omitempty"` // those with tables, except the core
}

// FeatureRecord is the version of a feature's tables as printed.
type FeatureRecord struct {
	Feature string `json:"feature"`
	Version int    `json:"version"`          // 0 if it has no tables
	Newest  int    `json:"newest,omitempty"` // that this program creates
	// OtherBuild is whether another build made the tables, from other migrations.
	OtherBuild bool `json:"other_build,omitempty"`
}

// change changes the schema and prints its new version.
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
	versions, err := versionsOf(ctx, backend)
	if err != nil {
		return err
	}
	record := SchemaRecord{Schema: c.database.Schema, Prefix: c.database.Prefix, SchemaVersion: versions[0].Version}
	text := fmt.Sprintf("schema %s, prefix %s", record.Schema, record.Prefix)
	if backend, ok := backend.(connect.Leases); ok {
		text = "leases, " + text
		if backend.Dialect() != lease.PostgreSQL { // other databases have no schemas
			record.Schema = ""
			text = fmt.Sprintf("leases, prefix %s", record.Prefix)
		}
	}
	if record.SchemaVersion == 0 {
		text += ": no tables"
	} else {
		text += fmt.Sprintf(": version %d", record.SchemaVersion)
	}
	for _, v := range versions[1:] {
		if v.Version > 0 {
			record.Features = append(record.Features, v)
			text += fmt.Sprintf(", %s version %d", v.Feature, v.Version)
		}
	}
	return c.out.Print(record, text)
}

// printSQL prints the script for a new schema.
func (c *migrateCommand) printSQL(features []string) error {
	return c.printScript(func(backend connect.Backend) (string, error) {
		switch b := backend.(type) {
		case *postgres.Backend:
			return b.MigrationSQL(features...)
		case connect.Leases:
			if len(features) > 0 {
				return "", errLeaseFeature
			}
			return b.MigrationSQL(), nil
		default:
			panic(fmt.Sprintf("a backend of type %T", b))
		}
	})
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
