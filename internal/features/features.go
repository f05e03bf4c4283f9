// Package features has the tables of the features above package postgres. Each is created
// on first use.
package features

import (
	"embed"

	"github.com/exactly-one/tenure/internal/schema"
)

//go:embed */*.sql */*.tsv
var files embed.FS

// Changes are the operators' changes of processors, schedules, roles and nodes.
var Changes = schema.Register(schema.Feature{
	Name:  "changes",
	Steps: schema.Steps(files, "changes"),
	Parts: schema.Parts(files, "changes"),
	Work:  []schema.Privilege{schema.OnTable("SELECT, INSERT, DELETE", "{changes}")},
	Compaction: []schema.Privilege{
		schema.OnTable("SELECT, DELETE", "{changes}"),
		schema.OnTable("UPDATE (id)", "{changes}"),
	},
})

// Events is the log of package eventstore.
var Events = schema.Register(schema.Feature{
	Name:  "events",
	Steps: schema.Steps(files, "events"),
	Parts: schema.Parts(files, "events"),
	Work:  []schema.Privilege{schema.OnTable("SELECT, INSERT", "{events}")},
})

// Processors are the processors of package processor, with their dead letters.
var Processors = schema.Register(schema.Feature{
	Name:     "processors",
	Requires: []*schema.Feature{Changes},
	Steps:    schema.Steps(files, "processors"),
	Parts:    schema.Parts(files, "processors"),
	Work: []schema.Privilege{
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{processors}"),
		schema.OnTable("SELECT, INSERT, UPDATE", "{processor_lags}"),
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{dead_letters}"),
	},
	Compaction: []schema.Privilege{
		schema.OnTable("SELECT, DELETE", "{dead_letters}"),
		schema.OnTable("UPDATE (id)", "{dead_letters}"),
	},
})

// Schedules are the schedules of package cron, with their runs.
var Schedules = schema.Register(schema.Feature{
	Name:     "schedules",
	Requires: []*schema.Feature{Changes},
	Steps:    schema.Steps(files, "schedules"),
	Parts:    schema.Parts(files, "schedules"),
	Work: []schema.Privilege{
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{schedules}"),
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{runs}"),
	},
	Compaction: []schema.Privilege{
		schema.OnTable("SELECT, DELETE", "{runs}"),
		schema.OnTable("UPDATE (id)", "{runs}"),
	},
})

// Samples are the nodes' measurements, see package metrics, and their daily totals.
var Samples = schema.Register(schema.Feature{
	Name:  "samples",
	Steps: schema.Steps(files, "samples"),
	Parts: schema.Parts(files, "samples"),
	Work: []schema.Privilege{
		schema.OnTable("SELECT, INSERT, UPDATE, DELETE", "{samples}"),
		schema.OnTable("SELECT", "{sample_days}"),
	},
	Compaction: []schema.Privilege{
		schema.OnTable("SELECT, DELETE", "{samples}"),
		schema.OnTable("SELECT, INSERT, UPDATE", "{sample_days}"),
	},
})

// Rollups are the daily totals of package retention: of terms, changes of nodes, and runs.
var Rollups = schema.Register(schema.Feature{
	Name:  "rollups",
	Steps: schema.Steps(files, "rollups"),
	Parts: schema.Parts(files, "rollups"),
	Work: []schema.Privilege{
		schema.OnTable("SELECT", "{term_days}"),
		schema.OnTable("SELECT", "{node_days}"),
		schema.OnTable("SELECT", "{run_days}"),
		schema.OnTable("SELECT", "{rollup_states}"),
	},
	Compaction: []schema.Privilege{
		schema.OnTable("SELECT, INSERT, UPDATE", "{term_days}"),
		schema.OnTable("SELECT, INSERT, UPDATE", "{node_days}"),
		schema.OnTable("SELECT, INSERT, UPDATE", "{run_days}"),
		schema.OnTable("SELECT, INSERT, UPDATE", "{rollup_states}"),
	},
})
