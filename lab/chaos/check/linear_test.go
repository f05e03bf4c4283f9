package check_test

import (
	"testing"

	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
)

// An hour of writes to one role, some without an answer, is decided.
func TestLongHistoriesAreDecided(t *testing.T) {
	const writes = 18_000
	long := func() *record.History {
		h := &record.History{Roles: []string{"role-1"}, Settings: good().Settings, End: writes * second}
		for i := range int64(writes) {
			if i%100 == 0 {
				h.Begins = append(h.Begins, record.Begin{Role: "role-1", Node: "n1.1", Term: 1 + i/100, From: i*second - second/2, To: i * second})
				h.Leads = append(h.Leads, record.Lead{Role: "role-1", Node: "n1.1", Term: 1 + i/100, From: i * second, To: (i + 100) * second})
			}
			w := record.Write{Role: "role-1", Term: 1 + i/100, Sequence: i, Position: i + 1, From: i*second + 1, To: i*second + second/4}
			h.Ledger = append(h.Ledger, record.Entry{Role: "role-1", Position: w.Position, Term: w.Term, Sequence: i})
			if i%200 != 17 {
				h.Writes = append(h.Writes, w)
			}
		}
		return h
	}
	if v := check.Check(long()); len(v.Violations) > 0 {
		t.Error(v.Violations)
	}
	bad := long()
	bad.Writes[writes/2].From, bad.Writes[writes/2].To = writes*second, (writes+1)*second
	if v := check.Check(bad); len(v.Violations) != 1 || v.Violations[0].Kind != check.Linearizability {
		t.Errorf("got %v; want one violation", v.Violations)
	}
}
