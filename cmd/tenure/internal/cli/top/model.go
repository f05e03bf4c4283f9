package top

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cmd/tenure/internal/live"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
)

// The lists with selectable rows.
const (
	roleList = iota
	nodeList
	lists
)

// maxEvents is how many changes are kept.
const maxEvents = 200

// model is the state of the screen. Only the drawing goroutine uses it.
type model struct {
	reading  live.Reading[snapshot]
	events   []event // oldest first
	list     int
	selected [lists]string // a role, and the id of a node
	asking   *confirmation
	message  string
}

// confirmation is a change before its confirmation.
type confirmation struct {
	text    string
	request tenure.Request
}

// take takes over a reading.
func (m *model) take(reading live.Reading[snapshot]) {
	switch {
	case m.reading.At.IsZero():
		m.events = recent(reading.Value, reading.At)
	case reading.At.After(m.reading.At):
		m.events = append(m.events, changes(m.reading.Value, reading.Value, reading.At)...)
		m.events = m.events[max(0, len(m.events)-maxEvents):]
	}
	m.reading = reading
}

// ids lists the selectable rows of a list.
func (m *model) ids(list int) []string {
	var all []string
	if list == roleList {
		for _, r := range m.reading.Value.roles {
			all = append(all, r.last.Role)
		}
		return all
	}
	for _, member := range m.reading.Value.members {
		all = append(all, member.ID.String())
	}
	return all
}

// index returns the place of the selected row; the first one if there is none.
func (m *model) index(list int) int {
	for i, id := range m.ids(list) {
		if id == m.selected[list] {
			return i
		}
	}
	return 0
}

// move selects another row of the present list.
func (m *model) move(by int) {
	if ids := m.ids(m.list); len(ids) > 0 {
		m.selected[m.list] = ids[min(max(0, m.index(m.list)+by), len(ids)-1)]
	}
}

// press applies a key. It returns a confirmed request, and whether to quit.
func (m *model) press(k key) (confirmed *confirmation, quit bool) {
	if m.asking != nil {
		asked := m.asking
		m.asking, m.message = nil, "canceled"
		switch k {
		case 'y', 'Y':
			m.message = asked.text + " …"
			return asked, false
		case keyInterrupt:
			return nil, true
		}
		return nil, false
	}
	m.message = ""
	switch k {
	case 'q', 'Q', keyInterrupt:
		return nil, true
	case keyTab:
		m.list = (m.list + 1) % lists
	case keyUp, 'k':
		m.move(-1)
	case keyDown, 'j':
		m.move(1)
	case 's':
		m.askStepDown()
	case 'd', 'u':
		m.askDrain(k == 'u')
	}
	return nil, false
}

// askStepDown asks whether the leader of the selected role is to step down.
func (m *model) askStepDown() {
	roles := m.reading.Value.roles
	if m.list != roleList || len(roles) == 0 {
		m.message = "select a role first, with tab and the arrows"
		return
	}
	r := roles[m.index(roleList)]
	name := console.Flatten(r.last.Role)
	if r.leader == nil {
		m.message = name + " has no leader"
		return
	}
	m.asking = &confirmation{
		text:    fmt.Sprintf("step down %s from %s", console.Flatten(r.leader.NodeName), name),
		request: tenure.Request{Kind: tenure.RequestStepDown, Role: r.last.Role, Term: r.leader.Term, By: connect.WhoAsks()},
	}
}

// askDrain asks whether the selected node is to be drained, or undrained.
func (m *model) askDrain(undrain bool) {
	members := m.reading.Value.members
	switch {
	case !m.reading.Value.drains:
		m.message = "this database has no registry of nodes, so they cannot be drained"
		return
	case m.list != nodeList || len(members) == 0:
		m.message = "select a node first, with tab and the arrows"
		return
	}
	member := members[m.index(nodeList)]
	kind, verb := tenure.RequestDrain, "drain"
	if undrain {
		kind, verb = tenure.RequestUndrain, "undrain"
	}
	if member.Status == tenure.StatusDead {
		m.message = console.Flatten(member.Name) + " is dead"
		return
	}
	m.asking = &confirmation{
		text:    fmt.Sprintf("%s %s", verb, console.Flatten(member.Name)),
		request: tenure.Request{Kind: kind, Node: member.ID, By: connect.WhoAsks()},
	}
}

// done shows the result of a request.
func (m *model) done(asked *confirmation, err error) {
	m.message = asked.text + ": requested"
	if err != nil {
		m.message = asked.text + ": " + console.OneLine(err)
	}
	m.events = append(m.events, event{time.Now(), m.message, err != nil})
}
