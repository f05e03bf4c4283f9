package roles

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/console"
)

// blocked is a role with transactions in the way of its next term.
type blocked struct {
	role     string
	blockers []history.Blocker
}

// sentences name the transactions and how to end them.
func (b blocked) sentences(now time.Time) []string {
	var all []string
	for _, t := range b.blockers {
		text := fmt.Sprintf("%s waits for %s", b.role, t)
		if !t.Since.IsZero() {
			text += ", open for " + console.SpellDuration(max(0, now.Sub(t.Since)))
		}
		if t.Terminable {
			text += ". The node terminates it after the fence timeout."
		} else {
			text += ". The node may not terminate it: run " + t.Advice + ";"
		}
		all = append(all, console.Flatten(text))
	}
	return all
}

// causes say why the first roles have no leader, if recorded by their last leaders, and
// when the next term is due.
func (s summary) causes() (sentences []string) {
	for _, v := range s.vacant {
		t := s.last[v.name]
		switch {
		case len(sentences) == maxNamed:
			return sentences
		case t.Reason == history.EndCompleted:
			sentences = append(sentences, console.Flatten(fmt.Sprintf("%s was completed at %s; its next run was due by %s.",
				v.name, console.ShortTime(t.Ended), console.ShortTime(t.NextBy))))
		case t.Cause != "" && t.Cause != history.CauseUnobserved:
			text := fmt.Sprintf("%s gave up %s at %s: %s.", t.NodeName, v.name, console.ShortTime(t.Ended), t.Cause)
			if t.NextBy.After(s.now) && s.living[t.Node] {
				text += fmt.Sprintf(" It campaigns again at %s.", console.ShortTime(t.NextBy))
			}
			sentences = append(sentences, console.Flatten(text))
		}
	}
	return sentences
}

// gaveUp says why leaders ended terms, the latest of each role.
func gaveUp(terms []history.Term) (sentences []string) {
	seen := map[string]bool{}
	for _, t := range terms {
		if t.Cause == "" || t.Cause == history.CauseUnobserved || seen[t.Role] || len(sentences) == maxNamed {
			continue
		}
		seen[t.Role] = true
		sentences = append(sentences, console.Flatten(fmt.Sprintf("%s gave up %s at %s: %s.", t.NodeName, t.Role, console.ShortTime(t.Ended), t.Cause)))
	}
	return sentences
}

// waited names the past obstacles to terms.
func waited(terms []history.Term) (sentences []string) {
	for _, t := range terms {
		if t.PrecedingBlocker != "" {
			sentences = append(sentences, console.Flatten(fmt.Sprintf("Term %d of %s began late, at %s: it waited for %s.",
				t.Term, t.Role, console.ShortTime(t.Began), t.PrecedingBlocker)))
		}
	}
	return sentences
}
