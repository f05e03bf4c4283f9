package database

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

const migrateRepairLong = `Mend what differs from what the migrations made: missing or changed tables, columns,
indexes, triggers and functions, missing rows, and positions of sequences. The tables
of all features that the database has are mended.

The command prints the statements and asks for confirmation; in scripts, use --yes.
With --dry-run it only prints them. No node may be running: if one is, the command
lists it and changes nothing. Terms that begin later have greater numbers than all
that the database still has. Rows that lost a column of their key are removed. If a
table was missing, run tenure migrate grants again for other database users.`

// RepairRecord is the result of a repair, or of a dry run, as printed.
type RepairRecord struct {
	Schema     string   `json:"schema"`
	Prefix     string   `json:"prefix"`
	DryRun     bool     `json:"dry_run"`
	Statements []string `json:"statements"` // in their order; empty if nothing was damaged
}

func newMigrateRepair(c *migrateCommand) *cobra.Command {
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use: "repair", Short: "Mend a damaged schema", Long: migrateRepairLong, Args: console.NoArgs,
		Example: "  tenure migrate repair --dry-run\n  tenure migrate repair --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.repair(cmd, dryRun, yes)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only print the statements")
	cmd.Flags().BoolVar(&yes, "yes", false, "proceed without confirmation")
	return cmd
}

// repair prints the repair, asks, and does it.
func (c *migrateCommand) repair(cmd *cobra.Command, dryRun, yes bool) error {
	if !dryRun && !yes && !console.Confirmable(cmd, c.out) {
		return console.Usage("cannot ask for confirmation here: use --yes to proceed, or --dry-run to only print the statements")
	}
	backend, err := c.database.Open(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer backend.Close()
	run := func(dryRun bool) ([]string, error) {
		ctx, cancel := context.WithTimeout(cmd.Context(), migrateTimeout)
		defer cancel()
		return repairTables(ctx, backend, dryRun)
	}
	record := RepairRecord{Schema: c.database.Schema, Prefix: c.database.Prefix, DryRun: dryRun, Statements: []string{}}
	if !dryRun && !yes {
		planned, err := run(true)
		switch {
		case err != nil:
			return err
		case len(planned) == 0:
			return c.out.Print(record, "nothing is damaged")
		}
		if agreed, err := c.confirmRepair(cmd, planned); err != nil || !agreed {
			return err
		}
	}
	done, err := run(dryRun)
	if err != nil {
		return err
	}
	record.Statements = append(record.Statements, done...)
	return c.out.Print(record, repairText(done, dryRun || yes))
}

// repairTables repairs, or with dryRun returns the statements.
func repairTables(ctx context.Context, backend connect.Backend, dryRun bool) ([]string, error) {
	switch b := backend.(type) {
	case *postgres.Backend:
		return b.MigrateRepair(ctx, dryRun)
	case connect.Leases:
		if b.Dialect() == lease.PostgreSQL {
			return nil, console.Usage("repair needs SQLite, MySQL, MariaDB, or PostgreSQL without tenure_mode=lease; here are leases on PostgreSQL")
		}
		return b.MigrateRepair(ctx, dryRun)
	default:
		panic(fmt.Sprintf("a backend of type %T", b))
	}
}

// repairText describes a completed repair, with the statements if they were not shown
// before.
func repairText(done []string, show bool) string {
	switch {
	case len(done) == 0:
		return "nothing is damaged"
	case show:
		return strings.Join(done, "\n")
	}
	return fmt.Sprintf("ran %d statements", len(done))
}

// confirmRepair shows the statements of a repair and asks whether to run them.
func (c *migrateCommand) confirmRepair(cmd *cobra.Command, planned []string) (agreed bool, err error) {
	if err := c.out.WriteText(strings.Join(planned, "\n") + "\n"); err != nil {
		return false, err
	}
	return console.Confirm(cmd, c.out, fmt.Sprintf("Run these %d statements?", len(planned)))
}
