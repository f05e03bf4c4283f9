package roles

import (
	"context"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/postgres"
)

// OutageHistoryRecord lists outages as printed.
type OutageHistoryRecord struct {
	Outages []OutageRecord `json:"outages"`
}

// OutageRecord is an outage as printed.
type OutageRecord struct {
	Began  console.Timestamp `json:"began_at"`
	Ended  console.Timestamp `json:"ended_at"`
	Lasted float64           `json:"lasted_seconds"`
	Cause  string            `json:"cause"` // server_changed or unreachable
	Roles  []string          `json:"roles"` // that stood still
}

// checkWhole rejects flags in conflict with --outages and --incidents: these are of all
// nodes and roles.
func (c *historyCommand) checkWhole() error {
	flag := "--outages"
	if c.incidents {
		flag = "--incidents"
	}
	switch {
	case c.outages && c.incidents:
		return console.Usage("--outages and --incidents exclude each other: incidents include outages")
	case (c.outages || c.incidents) && (c.nodes || c.node != "" || c.role.Given() || c.days != ""):
		return console.Usage("%s is about all nodes and roles: omit --nodes, --node, --role and --days", flag)
	}
	return nil
}

func (c *historyCommand) printOutages(ctx context.Context, backend *postgres.Backend, query history.Query) error {
	outages, err := backend.Outages(ctx, query)
	if err != nil {
		return err
	}
	record := OutageHistoryRecord{Outages: make([]OutageRecord, len(outages))}
	rows := [][]string{{"BEGAN", "ENDED", "LASTED", "ROLES", "CAUSE"}}
	for i, o := range outages {
		lasted, cause := o.Ended.Sub(o.Began), "unreachable"
		if o.ServerChanged {
			cause = string(history.EndServerChanged)
		}
		record.Outages[i] = OutageRecord{
			Began: console.Timestamp(o.Began), Ended: console.Timestamp(o.Ended), Lasted: lasted.Seconds(),
			Cause: cause, Roles: append([]string{}, o.Roles...),
		}
		rows = append(rows, []string{
			console.ShortTime(o.Began), console.ShortTime(o.Ended), lasted.Round(time.Millisecond).String(), strconv.Itoa(len(o.Roles)), cause,
		})
	}
	return c.out.PrintTable(record, rows, "ENDED")
}
