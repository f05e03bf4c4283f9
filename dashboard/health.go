package dashboard

import (
	"fmt"
	"slices"
	"strings"
)

// health is the state of the cluster in one sentence.
type health struct {
	Level    string `json:"level"` // good, warning or critical
	Sentence string `json:"sentence"`
}

const (
	good     = "good"
	warning  = "warning"
	critical = "critical"
)

// mostNamed is how many things a sentence names.
const mostNamed = 3

// health returns the most important problem first. The figures are those of the
// snapshot.
func (p *snapshot) health(n nowRecord) health {
	var silentNodes, failed []string
	for _, m := range p.members {
		if p.nodeState(m) == silent {
			silentNodes = append(silentNodes, m.Name)
		}
	}
	for _, processor := range p.work.Processors {
		if processor.Status == "failed" {
			failed = append(failed, processor.Name)
		}
	}
	firing := ""
	if n.Firing > 0 {
		firing = " " + count(n.Firing, "alert fires", "alerts fire") + "."
	}
	switch {
	case p.problem != nil && !p.seen:
		return health{critical, "The database cannot be read."}
	case p.problem != nil:
		return health{critical, "The database cannot be read; this is what was seen before."}
	case n.Vacant > 0:
		return health{critical, fmt.Sprintf("No node leads %s.", p.vacantText(n)) + firing}
	case len(silentNodes) > 0:
		verb := "is"
		if len(silentNodes) > 1 {
			verb = "are"
		}
		return health{warning, fmt.Sprintf("%s %s silent: %s still led, until the lease ends.", listed(silentNodes), verb,
			count(n.Silent, "role is", "roles are")) + firing}
	case len(failed) > 0:
		verb := "waits"
		if len(failed) > 1 {
			verb = "wait"
		}
		return health{warning, fmt.Sprintf("%s failed and %s for a person.", listed(failed), verb) + firing}
	case n.Firing > 0:
		return health{warning, fmt.Sprintf("All roles have a leader, and %s.", count(n.Firing, "alert fires", "alerts fire"))}
	case n.Roles == 0 && n.Living == 0:
		return health{good, "No node has joined yet: start a node."}
	case n.Roles == 0:
		return health{good, fmt.Sprintf("%s, and no role has been led yet.", count(n.Living, "live node", "live nodes"))}
	case n.Living == 1:
		return health{warning, fmt.Sprintf("All roles have a leader, but there is only one node: no other node would take over %s.", count(n.Roles, "its role", "its roles"))}
	default:
		return health{good, fmt.Sprintf("All roles have a leader: %s, %s.", count(n.Roles, "role", "roles"), count(n.Living, "node", "nodes"))}
	}
}

func (p *snapshot) vacantText(n nowRecord) string {
	var names []string
	for _, name := range p.names {
		if p.roles[name].state == vacant {
			if names = append(names, name); len(names) == mostNamed {
				break
			}
		}
	}
	if n.Vacant > len(names) {
		return fmt.Sprintf("%d of %d roles", n.Vacant, n.Roles)
	}
	return listed(names)
}

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// listed names some things in a sentence.
func listed(names []string) string {
	slices.Sort(names)
	var parts []string
	for _, name := range names[:min(len(names), mostNamed)] {
		parts = append(parts, quoted(name))
	}
	if more := len(names) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// mostRunes is how much of a name a sentence has room for.
const mostRunes = 40

// The marks around text whose direction is its own (Unicode Annex 9, section 2.4).
const (
	isolate = "\u2068"
	ended   = "\u2069"
)

// quoted makes a name part of a sentence: it is on one line, not too long, and does not
// change the text direction of the rest.
func quoted(name string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		switch {
		case isControl(r):
			return ' '
		case isDirection(r):
			return -1
		default:
			return r
		}
	}, name))
	if len(runes) > mostRunes {
		runes = append(runes[:mostRunes], '…')
	}
	return isolate + string(runes) + ended
}

func isControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}

// isDirection reports the characters that change the direction of what follows.
func isDirection(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}
