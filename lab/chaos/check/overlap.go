package check

import (
	"slices"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// networkDelay bounds how long a node needs to learn that the server's side ended
// its session, on one machine that is busy.
const networkDelay = time.Second

// checkOverlaps looks for two nodes that both trusted terms of one role.
func checkOverlaps(h *record.History, v *Verdict) {
	byRole := map[string][]record.Lead{}
	for _, lead := range h.Leads {
		byRole[lead.Role] = append(byRole[lead.Role], lead)
	}
	for _, role := range h.Roles {
		all := byRole[role]
		slices.SortFunc(all, func(a, b record.Lead) int { return int(a.From - b.From) })
		for i, later := range all {
			for _, earlier := range all[:i] {
				both := min(earlier.To, later.To) - later.From
				if both <= 0 || earlier.Term == later.Term && earlier.Node == later.Node {
					continue
				}
				took := time.Duration(both)
				if excused(h, earlier, later.From, took) {
					v.Excused = append(v.Excused, took)
					continue
				}
				v.violation(Overlap, later.From, "%s: %s (term %d) and %s (term %d) both trusted their terms for %v from %v",
					role, earlier.Node, earlier.Term, later.Node, later.Term, took, since(h, later.From))
			}
		}
	}
}

// excused reports whether docs/explanation/guarantees.md allows an overlap: "When the
// server's side ends the session of a living leader (pg_terminate_backend, a fast
// shutdown, a proxy that dies), its locks are free immediately. The old
// leader learns of this one network delay later … If the old leader cannot learn of it
// at all, the overlap is at most one trust window".
func excused(h *record.History, old record.Lead, from int64, took time.Duration) bool {
	window := h.Settings.Lease - h.Settings.Margin
	for _, f := range h.Faults {
		// A server that shuts down ends the sessions one after the other. Sessions seem silent
		// when the server's clock steps by more than the margin.
		ends := f.Kind == "terminate-sessions" || f.Kind == "clock-jump" || f.Kind == "server-restart" || f.Kind == "reset" && f.Node == number(old.Node)
		if !ends || f.From > from || from > f.To+int64(window) || old.From > f.To {
			continue
		}
		limit := networkDelay
		if unreachable(h, number(old.Node), f.From, from+int64(took)) {
			limit = window
		}
		if took <= limit {
			return true
		}
	}
	return false
}

// unreachable reports whether a fault of a node keeps the server's messages from it.
func unreachable(h *record.History, node int, from, to int64) bool {
	severs := []string{"stop-short", "stop-long", "freeze", "cut", "cut-to-server", "cut-to-node", "delay"}
	return slices.ContainsFunc(h.Faults, func(f record.Fault) bool {
		return f.Node == node && slices.Contains(severs, f.Kind) && f.From < to && f.To > from
	})
}

// number is that of the node in the name of a process, as in "n3.2".
func number(process string) int {
	n := 0
	for _, c := range process[min(1, len(process)):] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}
