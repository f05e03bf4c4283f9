package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/printable"
)

// Style is how sentences show times, names and texts.
type Style struct {
	Time func(time.Time) string
	Name func(string) string // of nodes, roles and requesters
	Text func(string) string // the cause of an end, which a node recorded
}

// Sentence describes the incident. Times are shown in the given location.
func (i Incident) Sentence(in *time.Location) string { return i.Describe(Plain(in)) }

// Plain shows times in RFC 3339 with the offset of a location, and names unchanged.
func Plain(in *time.Location) Style {
	return Style{
		Time: func(t time.Time) string { return t.In(in).Format(time.RFC3339) },
		Name: func(name string) string { return name },
		Text: func(text string) string { return text },
	}
}

// Describe describes the incident in a sentence.
func (i Incident) Describe(style Style) string { return teller{i, style}.sentence() }

// teller describes an incident in a style.
type teller struct {
	Incident
	Style
}

func (i teller) sentence() string { return i.event() + i.waited() }

// waited names the transactions in the way of terms, after a space: up to two, since an
// application usually holds up one role.
func (i teller) waited() string {
	const most = 2
	var blockers []string
	for _, m := range i.Moves {
		if by := m.To.PrecedingBlocker; by != "" && !slices.Contains(blockers, by) {
			blockers = append(blockers, by)
		}
	}
	if len(blockers) == 0 {
		return ""
	}
	var names []string
	for _, by := range blockers[:min(most, len(blockers))] {
		names = append(names, i.Name(by))
	}
	if more := len(blockers) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf(" The next term waited for %s.", joined(names))
}

// event describes the incident and its effect on the roles.
func (i teller) event() string {
	at := i.Time
	switch i.Kind {
	case Crash:
		if i.unobserved() {
			return fmt.Sprintf("%s crashed before %s; no node observed it.%s", i.names(), at(i.firstEnd()), i.moved("Its"))
		}
		return fmt.Sprintf("%s crashed at %s.%s", i.names(), at(i.Began), i.moved("Its"))
	case Silence:
		return fmt.Sprintf("%s fell silent at %s.%s", i.names(), at(i.Began), i.moved("Its"))
	case Outage:
		return i.outage()
	case Restart:
		return fmt.Sprintf("The database server restarted at %s or another one took over.%s", at(i.Began), i.stoodStill())
	case Drain:
		return fmt.Sprintf("%s began to drain at %s%s.%s", i.names(), at(i.Began), i.requester(), i.moved("Its"))
	case Shutdown:
		return fmt.Sprintf("%s stopped at %s%s.%s", i.names(), at(i.Began), i.requester(), i.moved("Its"))
	case Deployment:
		return fmt.Sprintf("%d nodes were replaced from %s to %s: %s.%s", len(i.Nodes), at(i.Began), at(i.lastEnd()), i.names(), i.moved("Their"))
	case Rebalance:
		return fmt.Sprintf("%s handed over %s at %s%s.", i.names(), roles(len(i.Moves)), at(i.Began), i.to())
	default:
		return i.change(at(i.Began))
	}
}

// outage describes an outage.
func (i teller) outage() string {
	o, server := i.Outage, ""
	if o.ServerChanged {
		server = "; the server lost its locks"
	}
	return fmt.Sprintf("No node reached the database from %s to %s (%s)%s.%s", i.Time(o.Began), i.Time(o.Ended), printable.Duration(o.Ended.Sub(o.Began)), server, i.stoodStill())
}

// change describes the move of one role, or of the roles that a node gave up together.
func (i teller) change(at string) string {
	m := i.Moves[0]
	verb := "gave up"
	switch m.From.Reason {
	case history.EndCompleted:
		return fmt.Sprintf("%s completed the work of %s at %s.", i.names(), i.Name(m.From.Role), at)
	case history.EndSteppedDown:
		verb = "stepped down from"
	case history.EndHandedOver:
		verb = "handed over"
	}
	cause := ""
	if m.From.Cause != "" {
		cause = ": " + i.Text(m.From.Cause)
	}
	what, whose := i.Name(m.From.Role), "It"
	if len(i.Moves) > 1 {
		what, whose = roles(len(i.Moves)), "They"
	}
	return fmt.Sprintf("%s %s %s at %s%s%s.%s", i.names(), verb, what, at, i.requester(), cause, i.moved(whose))
}

func (i teller) requester() string {
	if i.By == "" {
		return ""
	}
	return ", requested by " + i.Name(i.By)
}

// names lists up to three nodes.
func (i teller) names() string {
	const most = 3
	var names []string
	for _, n := range i.Nodes[:min(most, len(i.Nodes))] {
		names = append(names, i.Name(n.Name))
	}
	if more := len(i.Nodes) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return joined(names)
}

// joined lists names in a sentence.
func joined(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// moved is a sentence on the roles, after a space: whose is "Its", "Their" or, for roles
// named before, "It" or "They".
func (i teller) moved(whose string) string {
	total, vacant := len(i.Moves), i.Vacant()
	if total == 0 {
		return ""
	}
	subject := fmt.Sprintf("%s %s", whose, roles(total))
	of := strings.ToLower(subject[:1]) + subject[1:]
	switch {
	case whose == "It" || whose == "They":
		subject, of = whose, "them"
	case total == 1:
		subject = fmt.Sprintf("%s role %s", whose, i.Name(i.Moves[0].From.Role))
	}
	var parts []string
	if led := i.led(); led > 0 {
		parts = append(parts, fmt.Sprintf("%d moved%s %s", led, i.to(), i.delay()))
	}
	if vacant > 0 {
		parts = append(parts, fmt.Sprintf("%d %s no leader", vacant, have(vacant)))
	}
	if retired := i.retired(); retired > 0 {
		parts = append(parts, fmt.Sprintf("%d %s been retired", retired, have(retired)))
	}
	last := len(parts) - 1
	if last == 0 {
		_, what, _ := strings.Cut(parts[0], " ")
		return fmt.Sprintf(" %s %s.", subject, what)
	}
	return fmt.Sprintf(" Of %s, %s, and %s.", of, strings.Join(parts[:last], ", "), parts[last])
}

// led returns how many of the roles have had a leader since.
func (i Incident) led() (n int) {
	for _, m := range i.Moves {
		if m.To.Term > 0 {
			n++
		}
	}
	return n
}

// retired returns how many of the roles no longer need a leader.
func (i Incident) retired() int { return len(i.Moves) - i.led() - i.Vacant() }

func have(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// delay states how long the roles took. After silence, the time is longer than the locks
// were free. If no node observed a crash, the last heartbeat bounds it.
func (i teller) delay() string {
	if i.unobserved() {
		silence := time.Duration(-1)
		for _, m := range i.Moves {
			silence = max(silence, m.To.PrecedingSilence)
		}
		if silence <= 0 {
			return "after a time that was not observed"
		}
		return "after at most " + printable.Duration(silence)
	}
	if i.Kind != Silence {
		return "within " + printable.Duration(i.took())
	}
	text := fmt.Sprintf("after %s without a sign of life", printable.Duration(i.took()))
	if free := i.free(); free >= 0 {
		text += "; the lock was free for " + printable.Duration(free)
	}
	return text
}

// free is the longest time without a holder of a role's lock, or negative if unknown.
func (i teller) free() time.Duration {
	free := time.Duration(-1)
	for _, m := range i.Moves {
		if m.To.Term > 0 {
			free = max(free, m.To.PrecedingVacancy)
		}
	}
	return free
}

// stoodStill is a sentence on the roles of an outage, after a space.
func (i teller) stoodStill() string {
	if len(i.Moves) == 0 {
		return ""
	}
	text := fmt.Sprintf(" %s stood still", roles(len(i.Moves)))
	if vacant := i.Vacant(); vacant > 0 {
		return fmt.Sprintf("%s, and %d %s no leader.", text, vacant, have(vacant))
	}
	if retired := i.retired(); retired == len(i.Moves) {
		return fmt.Sprintf("%s and %s been retired.", text, have(retired))
	}
	longest := time.Duration(0)
	for _, m := range i.Moves {
		longest = max(longest, m.WithoutLeader())
	}
	if longest == 0 { // it is not known of any role
		longest = i.took()
	}
	return fmt.Sprintf("%s for up to %s.", text, printable.Duration(longest))
}

// took is the time from the cause until the last role was led again, or in a deployment or
// a drain the longest time of one role.
func (i teller) took() (took time.Duration) {
	for _, m := range i.Moves {
		from := i.Began
		if i.Kind == Deployment || i.Kind == Drain {
			from = m.From.Ended
		}
		if m.To.Term > 0 {
			took = max(took, m.To.Began.Sub(from))
		}
	}
	return took
}

// to lists the present leaders of the roles, after a space, the ones with most roles
// first, with the number of roles if there are several.
func (i teller) to() string {
	counts := map[string]int{}
	for _, m := range i.Moves {
		if m.To.Term > 0 {
			counts[m.To.NodeName]++
		}
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	if len(names) == 0 {
		return ""
	}
	if len(names) > 1 {
		for n, name := range names {
			names[n] = fmt.Sprintf("%s (%d)", i.Name(name), counts[name])
		}
	} else {
		names[0] = i.Name(names[0])
	}
	const most = 4
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return " to " + joined(names)
}

func roles(n int) string {
	if n == 1 {
		return "1 role"
	}
	return fmt.Sprintf("%d roles", n)
}
