package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// leastLines is how many lines the lists need before there is room for faults.
const leastLines = 10

const help = "up/down select  tab roles/nodes  s step down  d drain  u undrain  q quit"

// style is how a line looks on a terminal with colors.
type style string

const (
	plain    style = ""
	bold     style = "1"
	bad      style = "31"
	warning  style = "33"
	selected style = "7"
)

// view draws the model.
type view struct {
	width, height int
	colors        bool
	now           time.Time
}

// render returns the lines of the screen, at most as many as its height.
func (v view) render(m *model) []string {
	faults, roleRows, nodes, changes := v.share(m)
	look := bold
	if m.reading.Err != nil {
		look = bad
	}
	lines := []string{v.paint(look, v.title(m))}
	lines = append(lines, v.faults(m, faults)...)
	lines = append(lines, v.roles(m, roleRows)...)
	lines = append(lines, v.nodes(m, nodes)...)
	lines = append(lines, v.changes(m, changes)...)
	for len(lines) < v.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:min(len(lines), max(0, v.height-1))], v.footer(m))
}

// share divides the lines among the lists. What a list does not need is for the others, so
// that no line is empty while rows are hidden.
func (v view) share(m *model) (faults, roles, nodes, changes int) {
	room := max(0, v.height-2) // the title and the last line
	if n := len(m.reading.Value.faults); n > 0 && room >= leastLines {
		faults = min(n+1, room/4)
	}
	room -= faults
	allRoles, allNodes, allChanges := len(m.reading.Value.roles)+1, len(m.reading.Value.members)+1, len(m.events)+1
	nodes = min(allNodes, max(2, room/3))
	changes = max(2, min(allChanges, room/4))
	roles = min(allRoles, max(2, room-nodes-changes))
	nodes = min(allNodes, max(nodes, room-roles-changes))
	return faults, roles, nodes, room - roles - nodes
}

func (v view) title(m *model) string {
	vacant, dead := 0, 0
	for _, r := range m.reading.Value.roles {
		if r.urgency(v.now) == 0 {
			vacant++
		}
	}
	for _, member := range m.reading.Value.members {
		if roster.Dead(member) {
			dead++
		}
	}
	return fmt.Sprintf("tenure top  roles %d, vacant %d  nodes %d, dead %d  %s", len(m.reading.Value.roles), vacant,
		len(m.reading.Value.members), dead, console.AsOf(m.reading.At, m.reading.Err))
}

// roles returns at most n lines about roles.
func (v view) roles(m *model, n int) []string {
	rows := [][]string{{" ", "ROLE", "LEADER", "TERM", "FOR", "LEASE"}}
	styles := []style{bold}
	for _, r := range m.reading.Value.roles {
		row, look := []string{" ", console.Flatten(r.last.Role), "-", "-", "-", "-"}, bad
		if r.leader != nil {
			left := r.leader.ValidFor
			if m.reading.Err != nil { // else heartbeats renew it between two reads
				left -= v.now.Sub(r.leader.ReadAt)
			}
			copy(row[2:], []string{
				console.Flatten(r.leader.NodeName), strconv.FormatInt(r.leader.Term, 10),
				console.ShortDuration(max(0, v.now.Sub(r.leader.AcquiredAt))), max(0, left).Round(100 * time.Millisecond).String(),
			})
			look = plain
		} else if !r.last.Ended.IsZero() {
			state := "vacant, "
			if r.last.AtRest(v.now) {
				state, look = "at rest, ", plain
			}
			row[2], row[4] = state+string(r.last.Reason), console.ShortDuration(max(0, v.now.Sub(r.last.Ended)))
		}
		rows, styles = append(rows, row), append(styles, look)
	}
	return v.list(m, roleList, rows, styles, n)
}

// faults returns at most n lines about alerts, schedules and processors.
func (v view) faults(m *model, n int) []string {
	if n < 2 {
		return nil
	}
	all := m.reading.Value.faults
	header := "NOT WELL"
	if hidden := len(all) - (n - 1); hidden > 0 {
		header += fmt.Sprintf(" (%d more)", hidden)
	}
	rows := [][]string{{" ", header, "WHAT"}}
	for _, f := range all[:min(len(all), n-1)] {
		rows = append(rows, []string{" ", f.Name, f.What})
	}
	lines := strings.Split(strings.TrimSuffix(console.Table(rows, v.width), "\n"), "\n")
	for i := range lines {
		look := bad
		if i == 0 {
			look = bold
		}
		lines[i] = v.paint(look, lines[i])
	}
	return lines
}

// nodes returns at most n lines about nodes.
func (v view) nodes(m *model, n int) []string {
	rows := [][]string{{" ", "NODE", "STATUS", "LEADS", "UPTIME", "HOST", "ID"}}
	styles := []style{bold}
	for _, member := range m.reading.Value.members {
		look := plain
		switch member.Status {
		case tenure.StatusDead:
			look = bad
		case tenure.StatusDraining, tenure.StatusJoining:
			look = warning
		}
		uptime := "-"
		if !member.StartedAt.IsZero() {
			uptime = console.ShortDuration(record.Uptime(member))
		}
		rows = append(rows, []string{
			" ", console.Flatten(member.Name), statusText(member), strconv.Itoa(m.reading.Value.leads[member.ID.String()]),
			uptime, console.OrDash(console.Flatten(member.Host)), member.ID.String()[:8],
		})
		styles = append(styles, look)
	}
	return v.list(m, nodeList, rows, styles, n)
}

// list returns the header and the rows around the selected one, n lines at most. The
// header says how many rows are hidden.
func (v view) list(m *model, list int, rows [][]string, styles []style, n int) []string {
	chosen := m.index(list) + 1
	if m.list == list && chosen < len(rows) {
		rows[chosen][0], styles[chosen] = ">", selected
	}
	first := max(1, min(chosen-(n-1)/2, len(rows)-(n-1)))
	if hidden := len(rows) - n; hidden > 0 {
		rows[0][1] += fmt.Sprintf(" (%d more)", hidden)
	}
	var lines []string
	table := strings.Split(strings.TrimSuffix(console.Table(rows, v.width), "\n"), "\n")
	for i, line := range table {
		if i == 0 || i >= first && i < first+n-1 {
			lines = append(lines, v.paint(styles[i], line))
		}
	}
	return lines
}

// changes returns the latest changes, n lines at most.
func (v view) changes(m *model, n int) []string {
	if n < 2 {
		return nil
	}
	lines := []string{v.paint(bold, "  CHANGES")}
	if len(m.events) == 0 {
		lines = append(lines, "  none in the last hour")
	}
	for _, e := range m.events[max(0, len(m.events)-(n-1)):] {
		look := plain
		if e.bad {
			look = bad
		}
		lines = append(lines, v.paint(look, "  "+v.lately(e.at)+"  "+e.text))
	}
	return lines
}

// lately is a time of the local day if it is less than half a day ago: a date would leave no room
// for what happened.
func (v view) lately(at time.Time) string {
	if v.now.Sub(at) < 12*time.Hour {
		return at.Local().Format(time.TimeOnly)
	}
	return console.ShortTime(at)
}

func (v view) footer(m *model) string {
	switch {
	case m.asking != nil:
		return v.paint(warning, m.asking.text+"? y to confirm, any other key to cancel")
	case m.message != "":
		return v.paint(plain, m.message)
	}
	return v.paint(plain, help)
}

// paint cuts a line to the width, makes it printable, and gives it a style.
func (v view) paint(look style, line string) string {
	line = console.Cut(printable.Text(line), v.width)
	if !v.colors || look == plain {
		return line
	}
	return "\x1b[" + string(look) + "m" + line + "\x1b[0m"
}
