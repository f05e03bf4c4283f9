// Package alerting contains the common parts of alerts in the server and the program on
// each machine: the rules and their checks, the tables, and reading them. The server
// evaluates the rules.
package alerting

import (
	"embed"

	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

//go:embed migrations/*.sql migrations/parts.tsv
var migrations embed.FS

var feature = schema.Register(schema.Feature{
	Name:     "alerts",
	Requires: []*schema.Feature{features.Changes},
	Steps:    schema.Steps(migrations, "migrations"),
	Parts:    schema.Parts(migrations, "migrations"),
	Work: []schema.Privilege{
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{alert_rules}"),
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{alert_states}"),
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{alert_notifications}"),
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{alert_silences}"),
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{alert_history}"),
	},
})

// Tables returns the tables of alerts in a database.
func Tables(backend *postgres.Backend, database postgres.Database) schema.Tables {
	return schema.Tables{Schema: schema.Of(backend), Feature: feature, Database: database}
}

type tables struct{ schema.Tables }
