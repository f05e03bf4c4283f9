package database

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/postgres"
)

const migrateModeLong = `Change how an installation on PostgreSQL elects: by sessions or by leases.

An installation elects in the mode of its first node and refuses nodes of the other
mode, since they cannot see each other's leaders. No node may be running: if one is,
the command lists it and changes nothing. Afterwards, start the nodes with the other
connection string: with tenure_mode=lease for leases, without it for sessions.`

func newMigrateMode(c *migrateCommand) *cobra.Command {
	return &cobra.Command{
		Use: "mode sessions|leases", Short: "Change how an installation elects", Long: migrateModeLong,
		ValidArgs: []string{"sessions", "leases"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(cmd.ValidArgs, args[0]) {
				return console.Usage("name the mode: sessions or leases")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeMode(cmd.Context(), args[0])
		},
	}
}

// changeMode connects to PostgreSQL directly, even if the connection string is
// for leases.
func (c *migrateCommand) changeMode(ctx context.Context, mode string) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	target, err := c.database.Target()
	if err != nil {
		return err
	}
	if target.Leases() && target.Dialect() != lease.PostgreSQL {
		return console.Usage("%s supports only leases", target)
	}
	config := postgres.Config{Schema: c.database.Schema, Prefix: c.database.Prefix}
	b, err := target.Backend(config)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.SetMode(ctx, mode); err != nil {
		return err
	}
	record := map[string]string{"schema": config.Schema, "prefix": config.Prefix, "mode": mode}
	return c.out.Print(record, fmt.Sprintf("schema %s, prefix %s: elects by %s", config.Schema, config.Prefix, mode))
}
