package dashboard

import (
	"math"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// reading is the result of one read of the database.
type reading struct {
	members []tenure.Member
	clock   time.Time      // of the database; zero if no node reports it
	terms   []history.Term // nil if they were not read
	whole   bool           // the last term of every role is among them
	nodes   []history.NodeChange
	again   bool // it contains earlier changes of nodes than the last read
}

// latest is the latest time that JSON can represent.
var latest = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// showable replaces values of the tables no page can show: figures other than numbers,
// for example a node's own measurement, and infinite times.
func (r *reading) showable() {
	for i := range r.members {
		m := &r.members[i]
		m.CPU, m.Memory, m.StartedAt = finite(m.CPU), finite(m.Memory), showableTime(m.StartedAt)
	}
	showableTerms(r.terms)
	for i := range r.nodes {
		r.nodes[i].At = showableTime(r.nodes[i].At)
	}
}

func showableTerms(terms []history.Term) {
	for i := range terms {
		terms[i].Began, terms[i].Ended = showableTime(terms[i].Began), showableTime(terms[i].Ended)
	}
}

func finite(figure float64) float64 {
	if math.IsNaN(figure) || math.IsInf(figure, 0) {
		return 0
	}
	return figure
}

func showableTime(at time.Time) time.Time {
	switch {
	case at.After(latest):
		return latest
	case at.Year() < 0:
		return time.Unix(0, 0)
	default:
		return at
	}
}

// clockOf returns the time by the database's clock of the reading of nodes, or zero if
// there are no nodes.
func clockOf(members []tenure.Member) (clock time.Time) {
	for _, m := range members {
		if at := m.LastHeartbeat.Add(m.SilentFor); at.After(clock) {
			clock = at
		}
	}
	return clock
}
