package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/roster"
)

// summary is whether all is well.
type summary struct {
	roles   []string
	vacant  []lack                  // roles without a leader, the longest vacancy first
	rest    []string                // roles without a leader after completed work
	last    map[string]history.Term // the last terms of the roles without a leader
	lost    []string                // roles with a leader without a session
	foreign []string                // roles held by another program
	blocked []blocked
	nodes   bool // there is a registry of nodes
	alive   int
	living  map[uuid.UUID]bool
	busy    int    // joining or draining
	dead    []lack // nodes, the shortest silence first
	outages []history.Outage
	faults  []fault // of schedules, processors and alerts
	unread  []notRead
	now     time.Time
}

// lack is something missing.
type lack struct {
	name   string
	lasted time.Duration // negative if it is not known
}

// notRead is something unreadable, with the reason.
type notRead struct {
	what  string
	cause error
}

// outageAge is how long an outage is shown after its end.
const outageAge = time.Hour

// summarize reads the vacancies, the nodes and the outages for a summary of roles. With a
// reader of work, the summary covers the work too.
func summarize(ctx context.Context, backend connect.Backend, work *workReader, holders []history.RoleStatus) (summary, error) {
	s := summary{now: time.Now()}
	_, byLeases := backend.(connect.Leases)
	s.takeRoles(holders, byLeases)
	if work != nil {
		work.read(ctx, &s)
	}
	if err := s.readVacancies(ctx, backend); err != nil {
		return s, err
	}
	if source, ok := backend.(roster.Source); ok && !byLeases {
		found, err := roster.Read(ctx, source)
		switch {
		case unreadable(err):
			s.unread = append(s.unread, notRead{"nodes", err})
		case err != nil:
			return s, err
		default:
			s.takeNodes(found.Current())
		}
	}
	var err error
	s.outages, err = readOutages(ctx, backend, history.Query{Since: s.now.Add(-outageAge), Limit: 1})
	if unreadable(err) {
		s.unread, err = append(s.unread, notRead{"outages", err}), nil
	}
	return s, err
}

// unreadable reports an error about a table if the user may not read it, or if it does
// not exist: the summary names it, with the cause.
func unreadable(err error) bool {
	return errors.Is(err, dberr.ErrPrivilege) || errors.Is(err, dberr.ErrSchema)
}

func (s *summary) takeRoles(holders []history.RoleStatus, byLeases bool) {
	for _, h := range holders {
		s.roles = append(s.roles, h.Role)
		if len(h.Blockers) > 0 {
			s.blocked = append(s.blocked, blocked{h.Role, h.Blockers})
		}
		held := slices.ContainsFunc(h.Sessions, func(l history.LockSession) bool { return !l.Foreign() })
		switch {
		case h.Leader == nil && !held && len(h.Sessions) > 0:
			s.foreign = append(s.foreign, h.Role)
		case h.Leader == nil:
			s.vacant = append(s.vacant, lack{h.Role, -1})
		case !held && !byLeases:
			s.lost = append(s.lost, h.Role)
		}
	}
}

// maxRoles is how many roles are read to find how long they are vacant.
const maxRoles = 10_000

// readVacancies reads for how long roles have had no leader.
func (s *summary) readVacancies(ctx context.Context, backend connect.Backend) error {
	if len(s.vacant) == 0 {
		return nil
	}
	query := history.Query{Latest: true, Limit: maxRoles}
	if len(s.vacant) == 1 {
		query.Role = s.vacant[0].name
	}
	terms, err := backend.History(ctx, query)
	if err != nil && !unreadable(err) {
		return err
	}
	s.takeVacancies(terms)
	return nil
}

// takeVacancies takes over the ends of the last terms.
func (s *summary) takeVacancies(terms []history.Term) {
	s.last = map[string]history.Term{}
	for _, t := range terms {
		s.last[t.Role] = t
	}
	s.vacant = slices.DeleteFunc(s.vacant, func(v lack) bool {
		t, found := s.last[v.name]
		resting := found && t.AtRest(s.now)
		if resting {
			s.rest = append(s.rest, v.name)
		}
		return resting
	})
	for i, v := range s.vacant {
		if at := s.last[v.name].Ended; !at.IsZero() {
			s.vacant[i].lasted = max(0, s.now.Sub(at))
		}
	}
	slices.SortStableFunc(s.vacant, longest)
}

func (s *summary) takeNodes(members []tenure.Member) {
	s.nodes, s.living = true, map[uuid.UUID]bool{}
	for _, m := range members {
		switch m.Status {
		case tenure.StatusDead:
			s.dead = append(s.dead, lack{m.Name, m.SilentFor})
			continue
		case tenure.StatusJoining, tenure.StatusDraining:
			s.busy++
		}
		s.alive++
		s.living[m.ID] = true
	}
	slices.SortStableFunc(s.dead, func(a, b lack) int { return cmp.Compare(a.lasted, b.lasted) })
}

// fill shows the summary.
func (s summary) fill(page *console.Page) {
	page.Paragraph(s.sentence())
	for _, sentence := range s.causes() {
		page.Paragraph(sentence)
	}
	for _, b := range s.blocked {
		for _, sentence := range b.sentences(s.now) {
			page.Paragraph(sentence)
		}
	}
	for _, o := range s.outages {
		page.Paragraph(outageSentence(o, s.now))
	}
	for _, u := range s.unread {
		page.Paragraph(u.sentence())
	}
}

func (u notRead) sentence() string {
	return fmt.Sprintf("%s%s are not known: %v.", strings.ToUpper(u.what[:1]), u.what[1:], u.cause)
}

// sentence is one line with all problems.
func (s summary) sentence() string {
	parts := []string{s.rolesText()}
	if n := len(s.rest); n > 0 && n < len(s.roles) {
		parts = append(parts, plural(n, "role is", "roles are")+" at rest: "+names(s.rest))
	}
	if n := len(s.lost); n > 0 {
		parts = append(parts, fmt.Sprintf("%s no session: %s", plural(n, "leader has", "leaders have"), names(s.lost)))
	}
	if n := len(s.foreign); n > 0 {
		parts = append(parts, fmt.Sprintf("another program holds %s: %s", plural(n, "role", "roles"), names(s.foreign)))
	}
	if s.nodes {
		parts = append(parts, s.nodesText())
	}
	for _, f := range s.faults {
		parts = append(parts, f.text())
	}
	if len(s.unread) > 0 {
		parts = append(parts, strings.Join(namesOfUnread(s.unread), " and ")+" cannot be read")
	}
	return strings.Join(parts, "; ") + "."
}

func (s summary) rolesText() string {
	all, vacant := len(s.roles)-len(s.rest), len(s.vacant)
	led := all - vacant - len(s.lost) - len(s.foreign)
	switch {
	case len(s.roles) == 0:
		return "No role has had a leader yet"
	case all == 0:
		return "No role needs a leader now: " + names(s.rest) + " " + isOrAre(len(s.rest)) + " at rest"
	case vacant > 0:
		return fmt.Sprintf("%s no leader: %s", of(vacant, all, "has", "have"), lacks(s.vacant))
	case led == 0:
		return "No role is led"
	case led < all:
		return of(led, all, "is", "are") + " led"
	case all == 1:
		led := slices.DeleteFunc(slices.Clone(s.roles), func(role string) bool { return slices.Contains(s.rest, role) })
		return fmt.Sprintf("The role %s is led", console.Flatten(led[0]))
	default:
		return fmt.Sprintf("All %d roles are led", all)
	}
}

func (s summary) nodesText() string {
	switch {
	case s.alive == 0 && len(s.dead) == 0:
		return "there are no nodes"
	case s.alive == 0: // the registry has no heartbeat of a node that has left
		return fmt.Sprintf("no node is alive; %s: %s", plural(len(s.dead), "node is dead", "nodes are dead"), lacks(s.dead))
	}
	text := plural(s.alive, "node is alive", "nodes are alive")
	if len(s.dead) > 0 {
		text = fmt.Sprintf("%s: %s; %s", plural(len(s.dead), "node is dead", "nodes are dead"), lacks(s.dead), text)
	}
	if s.busy > 0 {
		text += fmt.Sprintf(", %d of them joining or draining", s.busy)
	}
	return text
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// maxNamed is how many roles or nodes a sentence names.
const maxNamed = 3

// lacks lists the missing things, and for how long if known.
func lacks(all []lack) string {
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.name
		if l.lasted >= 0 {
			texts[i] += " for " + console.SpellDuration(l.lasted)
		}
	}
	return names(texts)
}

// names lists the first texts.
func names(all []string) string {
	var shown []string
	for _, name := range all[:min(len(all), maxNamed)] {
		shown = append(shown, console.Flatten(name))
	}
	if more := len(all) - maxNamed; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}

// of counts roles: "3 of 34 roles have".
func of(n, all int, one, several string) string {
	verb := several
	if n == 1 {
		verb = one
	}
	return fmt.Sprintf("%d of %s %s", n, plural(all, "role", "roles"), verb)
}

func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
