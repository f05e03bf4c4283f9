package database

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/installation"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

const migrateStatusLong = `Print the features, each with the version of its tables in the database and the
newest version that this program creates. A feature without tables was never used.
"another build" made a version from other migrations than those of this program.`

// StatusRecord is the state of all features as printed.
type StatusRecord struct {
	Features []FeatureRecord `json:"features"`
}

func newMigrateStatus(c *migrateCommand) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Print the version of each feature's tables", Long: migrateStatusLong, Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.status(cmd.Context()) },
	}
}

func (c *migrateCommand) status(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	backend, err := c.database.Open(ctx, false)
	if err != nil {
		return err
	}
	defer backend.Close()
	versions, err := versionsOf(ctx, backend)
	if err != nil {
		return err
	}
	rows := [][]string{{"FEATURE", "VERSION", "NEWEST"}}
	for _, v := range versions {
		version := orDash(v.Version)
		if v.OtherBuild {
			version += " (another build)"
		}
		rows = append(rows, []string{v.Feature, version, orDash(v.Newest)})
	}
	return c.out.PrintTable(StatusRecord{versions}, rows)
}

func orDash(version int) string {
	if version == 0 {
		return "-"
	}
	return strconv.Itoa(version)
}

// versionsOf returns the versions of all features, the core first. Leases are one.
func versionsOf(ctx context.Context, backend connect.Backend) ([]FeatureRecord, error) {
	switch b := backend.(type) {
	case *postgres.Backend:
		versions, err := b.SchemaVersions(ctx)
		var all []FeatureRecord
		for _, v := range versions {
			all = append(all, FeatureRecord(v))
		}
		return all, err
	case connect.Leases:
		version, err := b.SchemaVersion(ctx)
		return []FeatureRecord{{Feature: "leases", Version: version, Newest: installation.LeasesVersion}}, err
	default:
		panic(fmt.Sprintf("a backend of type %T", b))
	}
}
