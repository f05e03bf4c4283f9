package series

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/prometheus/common/model"

	"github.com/exactly-one/tenure/internal/printable"
)

// setPresenceLocked sets tenure_node_up of each name, and tenure_node_reporting of each live
// node, at a time.
func (s *Store) setPresenceLocked(at int64, nodes []Node) {
	s.replaced = replacedNodes(nodes, s.replaced)
	up := map[string]float64{}
	for _, n := range nodes {
		name := printable.Label(n.Name)
		switch {
		case n.Alive:
			up[name] = 1
		case !s.replaced[n.ID]:
			up[name] = max(up[name], 0)
		}
	}
	for name, value := range up {
		s.setLocked(at, value, model.MetricNameLabel, nodeUpMetric, nodeNameLabel, name)
	}
	for _, known := range nodes {
		if !known.Alive {
			continue
		}
		reporting := 0.0
		if n := s.nodes[known.ID]; n != nil && !n.silent {
			reporting = 1
		}
		s.setLocked(at, reporting, model.MetricNameLabel, nodeReportingMetric, nodeLabel, known.ID.String(), nodeNameLabel, printable.Label(known.Name))
	}
}

// replacedNodes returns the replaced dead nodes, also nodes replaced before: a
// replacement may have left since.
func replacedNodes(nodes []Node, before map[uuid.UUID]bool) map[uuid.UUID]bool {
	replaced := map[uuid.UUID]bool{}
	live := map[string]bool{}
	hosts := map[string][]Node{} // nodes with default names, which no restart keeps
	for _, n := range nodes {
		if n.Alive {
			live[n.Name] = true
		}
		if n.hasDefaultName() {
			hosts[n.Host] = append(hosts[n.Host], n)
		}
	}
	for _, n := range nodes {
		if !n.Alive && (before[n.ID] || live[n.Name]) {
			replaced[n.ID] = true
		}
	}
	for _, of := range hosts {
		replaceOnHost(of, replaced)
	}
	return replaced
}

// replaceOnHost matches each node of a host with a node that had died before it started:
// the last one to die.
func replaceOnHost(nodes []Node, replaced map[uuid.UUID]bool) {
	slices.SortFunc(nodes, func(a, b Node) int { return a.Started.Compare(b.Started) })
	deaths := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Alive })
	slices.SortFunc(deaths, func(a, b Node) int { return cmp.Or(a.Died.Compare(b.Died), a.Started.Compare(b.Started)) })
	var open []uuid.UUID
	for _, n := range nodes {
		for len(deaths) > 0 && !deaths[0].Died.After(n.Started) {
			open, deaths = append(open, deaths[0].ID), deaths[1:]
		}
		if last := len(open) - 1; last >= 0 {
			replaced[open[last]] = true
			open = open[:last]
		}
	}
}

// hasDefaultName reports whether the name consists of the host and a process id.
func (n Node) hasDefaultName() bool {
	pid, ok := strings.CutPrefix(n.Name, n.Host+"-")
	return ok && n.Host != "" && pid != "" && strings.Trim(pid, "0123456789") == ""
}
