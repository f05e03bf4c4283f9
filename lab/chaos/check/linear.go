package check

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// ledger is the state of the model of one role: the newest term, and the last
// position of its fenced writes.
type ledger struct{ term, position int64 }

// operation is the begin of a term, or a fenced write that got a position.
type operation struct{ term, position int64 }

func (o operation) begins() bool { return o.position == 0 }

// model is a role as one process would keep it. A term begins only if its number is
// greater than all before it. A write commits only in the newest term, and gets the
// next position.
var model = porcupine.Model{
	Init: func() any { return ledger{} },
	Step: func(state, input, _ any) (bool, any) {
		s, o := state.(ledger), input.(operation)
		if o.begins() {
			return o.term > s.term, ledger{o.term, s.position}
		}
		return o.term == s.term && o.position == s.position+1, ledger(o)
	},
	DescribeOperation: func(input, _ any) string {
		o := input.(operation)
		if o.begins() {
			return fmt.Sprintf("begin %d", o.term)
		}
		return fmt.Sprintf("write %d of term %d", o.position, o.term)
	},
}

// linearTime bounds the check of one role.
const linearTime = 2 * time.Minute

// checkLinearizability checks, role by role, that the terms and the fenced writes
// could have happened one after another, each between its call and its return. A
// write without an answer that is in the ledger happened at any time after its term
// began. A write without an answer that is not there did not happen.
func checkLinearizability(h *record.History, v *Verdict) {
	begins := map[string][]record.Begin{}
	for _, b := range h.Begins {
		begins[b.Role] = append(begins[b.Role], b)
	}
	entries := map[string][]record.Entry{}
	for _, e := range h.Ledger {
		entries[e.Role] = append(entries[e.Role], e)
	}
	writes := map[record.Entry]record.Write{}
	for _, w := range h.Writes {
		writes[record.Entry{Role: w.Role, Position: w.Position, Term: w.Term, Sequence: w.Sequence}] = w
	}
	for _, role := range h.Roles {
		history := operations(begins[role], entries[role], writes)
		switch porcupine.CheckOperationsTimeout(model, history, linearTime) {
		case porcupine.Illegal:
			v.violation(Linearizability, 0, "%s: no order explains the %d terms and %d fenced writes%s",
				role, len(begins[role]), len(entries[role]), firstConflict(h, begins[role]))
		case porcupine.Unknown:
			v.violation(Linearizability, 0, "%s: no verdict within %v", role, linearTime)
		case porcupine.Ok:
		}
	}
}

func operations(begins []record.Begin, entries []record.Entry, writes map[record.Entry]record.Write) []porcupine.Operation {
	var all []porcupine.Operation
	called := map[int64]int64{}
	for _, b := range begins {
		called[b.Term] = b.From
		all = append(all, porcupine.Operation{Input: operation{term: b.Term}, Call: b.From, Return: b.To})
	}
	for _, e := range entries {
		op := porcupine.Operation{Input: operation{e.Term, e.Position}, Call: called[e.Term], Return: math.MaxInt64}
		if w, acknowledged := writes[e]; acknowledged {
			op.Call, op.Return = w.From, w.To
		}
		all = append(all, op)
	}
	return all
}

// firstConflict describes two terms whose numbers and times contradict each other,
// if there are any.
func firstConflict(h *record.History, begins []record.Begin) string {
	all := slices.SortedFunc(slices.Values(begins), func(a, b record.Begin) int { return int(a.From - b.From) })
	for i, later := range all {
		for _, earlier := range all[:i] {
			if earlier.To < later.From && later.Term <= earlier.Term {
				return fmt.Sprintf("; term %d of %s began after %v, and term %d of %s had begun at %v",
					later.Term, later.Node, since(h, later.From), earlier.Term, earlier.Node, since(h, earlier.To))
			}
		}
	}
	return ""
}

// checkLedger checks that acknowledged writes are there, and that no write of an old
// term comes after one of a newer term.
func checkLedger(h *record.History, v *Verdict) {
	there := map[record.Entry]bool{}
	newest, last := map[string]int64{}, map[string]int64{}
	for _, e := range h.Ledger { // in the order of positions
		there[e] = true
		if e.Term < newest[e.Role] {
			v.violation(Order, 0, "%s: write %d of term %d was committed after a write of term %d", e.Role, e.Sequence, e.Term, newest[e.Role])
		}
		if e.Position != last[e.Role]+1 {
			v.violation(Order, 0, "%s: position %d follows position %d", e.Role, e.Position, last[e.Role])
		}
		newest[e.Role], last[e.Role] = max(newest[e.Role], e.Term), e.Position
	}
	for _, w := range h.Writes {
		if !there[record.Entry{Role: w.Role, Position: w.Position, Term: w.Term, Sequence: w.Sequence}] {
			v.violation(LostWrite, w.To, "%s: the acknowledged write %d of term %d is gone", w.Role, w.Sequence, w.Term)
		}
	}
}
