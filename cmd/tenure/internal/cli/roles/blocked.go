package roles

import (
	"fmt"
	"time"

	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/program/console"
)

// blocked is a role whose next term transactions keep from beginning.
type blocked struct {
	role     string
	blockers []history.Blocker
}

// sentences name the transactions and what ends them.
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

// waited names what kept terms from beginning.
func waited(terms []history.Term) (sentences []string) {
	for _, t := range terms {
		if t.PrecedingBlocker != "" {
			sentences = append(sentences, console.Flatten(fmt.Sprintf("Term %d of %s began late, at %s: it waited for %s.",
				t.Term, t.Role, console.ShortTime(t.Began), t.PrecedingBlocker)))
		}
	}
	return sentences
}
