// Package check judges what a chaos run recorded. It allows what docs/explanation/guarantees.md
// allows, and nothing else.
package check

import "github.com/exactly-one/tenure/lab/chaos/record"

// Check judges a history.
func Check(h *record.History) *Verdict {
	v := new(Verdict)
	for _, text := range h.Complaints {
		v.violation(Complaint, 0, "%s", text)
	}
	checkLinearizability(h, v)
	checkOverlaps(h, v)
	checkVacancies(h, v)
	checkLedger(h, v)
	checkTicks(h, v)
	checkPace(h, v)
	checkEvents(h, v)
	checkDeliveries(h, v)
	checkFigures(h, v)
	checkResources(h, v)
	return v
}
