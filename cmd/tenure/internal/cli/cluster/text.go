package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// maxLeaders is how many leaders the text output lists; tenure status lists
// all.
const maxLeaders = 20

// fillCluster shows a cluster under its title.
func fillCluster(page *console.Page, found *roster.Roster, title string) {
	page.Paragraph(fmt.Sprintf("%s: %s", console.Flatten(title), countsText(found.Counts())))
	if len(found.Members) > 0 {
		page.Line("")
		page.Table(nodeRows(found), omittedOfNodes...)
	}
	if len(found.Leaders) > 0 {
		page.Line("")
		page.Table(leaderRows(found), "ID", "TERM")
	}
	if more := len(found.Leaders) - maxLeaders; more > 0 {
		fmt.Fprintf(page, "and %d more: see tenure status\n", more)
	}
	fillUnplaced(page, record.NewUnplaced(found.Unplaced))
}

// countsText returns the number of nodes by status.
func countsText(counts record.Counts) string {
	if counts.Total == 0 {
		return "no nodes"
	}
	noun := "nodes"
	if counts.Total == 1 {
		noun = "node"
	}
	text := fmt.Sprintf("%d %s: %d active, %d joining, %d draining, %d dead",
		counts.Total, noun, counts.Active, counts.Joining, counts.Draining, counts.Dead)
	if counts.Replaced > 0 {
		text += fmt.Sprintf(", %d replaced", counts.Replaced)
	}
	return text
}

// omittedOfNodes are the columns to omit on a narrow terminal.
var omittedOfNodes = []string{"VERSION", "HOSTNAME", "LOAD", "ID", "UPTIME"}

// nodeRows returns the nodes as a table with a header.
func nodeRows(found *roster.Roster) [][]string {
	short := found.ShortIDs()
	rows := [][]string{{"ID", "NAME", "HOSTNAME", "STATUS", "ROLES", "LOAD", "UPTIME", "VERSION"}}
	for _, m := range found.Members {
		load := fmt.Sprintf("%.0f%%", 100*m.Mean())
		if m.Status == tenure.StatusDead {
			load = "-"
		}
		rows = append(rows, []string{
			short(m.ID), console.Flatten(m.Name), console.OrDash(console.Flatten(m.Host)), listedStatus(found, m), console.OrDash(rolesColumn(m.Roles, found.Leads(m.ID))),
			load, console.ShortDuration(record.Uptime(m)), console.OrDash(console.Flatten(m.Version)),
		})
	}
	return rows
}

// listedStatus is the status of a node in a list.
func listedStatus(found *roster.Roster, m tenure.Member) string {
	if found.Replaced(m) {
		return "replaced"
	}
	return statusText(m)
}

func statusText(m tenure.Member) string {
	if m.Status == tenure.StatusDraining && m.Drained {
		return "drained"
	}
	return string(m.Status)
}

// maxLed is how many of a node's led roles are listed in a column.
const maxLed = 4

// rolesColumn lists the roles of a node, with a star after the led ones.
func rolesColumn(roles, leads []string) string {
	var texts []string
	for _, role := range roles {
		text := console.Flatten(role)
		if slices.Contains(leads, role) {
			text += "*"
		}
		texts = append(texts, text)
	}
	others := slices.DeleteFunc(slices.Clone(leads), func(role string) bool { return slices.Contains(roles, role) })
	for i, role := range others {
		if i == maxLed && len(others) > maxLed+1 {
			texts = append(texts, fmt.Sprintf("%d more*", len(others)-maxLed))
			break
		}
		texts = append(texts, console.Flatten(role)+"*")
	}
	return strings.Join(texts, ", ")
}

// leaderRows returns the first leaders as a table with a header.
func leaderRows(found *roster.Roster) [][]string {
	short := found.ShortIDs()
	rows := [][]string{{"ROLE", "LEADER", "ID", "TERM", "SINCE"}}
	for i, leader := range found.Leaders {
		if i == maxLeaders {
			break
		}
		id := leader.NodeID.String()
		if _, known := found.Member(leader.NodeID); known {
			id = short(leader.NodeID)
		}
		rows = append(rows, []string{
			console.Flatten(leader.Role), console.Flatten(leader.NodeName), id, strconv.FormatInt(leader.Term, 10), console.ShortTime(leader.AcquiredAt),
		})
	}
	return rows
}

// nodeDetails returns the details of a node as a table.
func nodeDetails(m tenure.Member, leads []string) [][]string {
	pairs := func(texts []string) string {
		slices.Sort(texts)
		return strings.Join(texts, ", ")
	}
	var labels, spreads []string
	for name, value := range m.Labels {
		labels = append(labels, name+"="+value)
	}
	for name, weight := range m.Spreads {
		spreads = append(spreads, name+"="+strconv.FormatFloat(weight, 'g', -1, 64))
	}
	status := statusText(m)
	if m.StatusBy != "" {
		status += ", requested by " + m.StatusBy
	}
	rows := [][]string{
		{"id", m.ID.String()},
		{"name", m.Name},
		{"status", status},
		{"hostname", m.Host},
		{"address", addressText(m)},
		{"roles", strings.Join(m.Roles, ", ")},
		{"leads", strings.Join(leads, ", ")},
		{"capabilities", strings.Join(m.Capabilities, ", ")},
		{"labels", pairs(labels)},
		{"spreads", pairs(spreads)},
		{"version", m.Version},
		{"started", console.ShortTime(m.StartedAt)},
		{"uptime", console.ShortDuration(record.Uptime(m))},
		{"last heartbeat", fmt.Sprintf("%s, %s ago", console.ShortTime(m.LastHeartbeat), console.ShortDuration(m.SilentFor))},
		{"lease", m.Lease.String()},
		{"load", fmt.Sprintf("%.0f%% (CPU %.1f%%, memory %.1f%%)", 100*m.Mean(), m.CPU, m.Memory)},
		{"work", fmt.Sprintf("%d connections, %d jobs, %d in flight", m.Connections, m.Jobs, m.InFlight)},
	}
	for i := range rows {
		rows[i][1] = console.OrDash(console.Flatten(rows[i][1]))
	}
	return rows
}

// addressText returns the address of a node.
func addressText(m tenure.Member) string {
	text := m.Address
	for _, port := range []struct {
		name   string
		number int
	}{{"http", m.HTTPPort}, {"grpc", m.GRPCPort}} {
		if port.number != 0 {
			text += fmt.Sprintf(" %s:%d", port.name, port.number)
		}
	}
	return strings.TrimSpace(text)
}

// nodeLabel identifies a node in a sentence.
func nodeLabel(name string, id uuid.UUID) string {
	return fmt.Sprintf("%s (%s)", console.Flatten(name), id)
}
