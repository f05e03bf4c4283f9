package check

import (
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// checkVacancies compares every vacancy with the documented bound, counted from when
// the last fault that can have caused it began, or ended if no node can lead during
// it. Faults that meet one vacancy one after another each add their bound: a second
// fault can hit the next leader.
func checkVacancies(h *record.History, v *Verdict) {
	leads := map[string][]record.Lead{}
	for _, lead := range h.Leads {
		leads[lead.Role] = append(leads[lead.Role], lead)
	}
	for _, role := range h.Roles {
		all := leads[role]
		if len(all) == 0 {
			v.violation(Vacancy, 0, "%s: no node led", role)
			continue
		}
		slices.SortFunc(all, func(a, b record.Lead) int { return int(a.From - b.From) })
		until := all[0].To
		for _, lead := range all[1:] {
			if end := min(lead.From, h.End); end > max(until, h.Start) {
				checkGap(h, v, role, until, end)
			}
			until = max(until, lead.To)
		}
		if until < h.End {
			checkGap(h, v, role, until, h.End)
		}
	}
}

// mostLeases bounds each vacancy, whatever faults meet in it, without the time for which no
// node could lead. Otherwise one that never ends would be excused by every new fault.
const mostLeases = 15

func checkGap(h *record.History, v *Verdict, role string, from, to int64) {
	s := h.Settings
	deadline, allowance := from, loadSlack
	kind, overloaded := "none", false
	var blocked int64
	var met []string
	for _, f := range h.Faults {
		if f.Kind == Overload && ofServer(h, f) {
			continue
		}
		b, known := bounds[f.Kind]
		limit := b.limit
		if !known {
			limit = crash
		}
		anchor := f.From
		if b.blocks {
			anchor = f.To
			blocked += max(0, min(f.To, to)-max(f.From, from))
		}
		if f.Failed != "" || f.From > to || max(anchor, f.To)+int64(limit(s)+loadSlack) < from {
			continue
		}
		deadline = max(deadline, anchor)
		allowance += limit(s)
		kind, met = f.Kind, append(met, f.Step)
		overloaded = overloaded || f.Kind == Overload
	}
	if len(met) == 0 {
		allowance += bounds["none"].limit(s)
	}
	if overloaded {
		kind = Overload // no fault of the script explains how long it took
	}
	took := time.Duration(to - from)
	v.Gaps = append(v.Gaps, Gap{role, kind, since(h, from), took, strings.Join(met, "; ")})
	if late := time.Duration(to - deadline); late > allowance {
		v.violation(Vacancy, to, "%s: vacant for %v from %v, %v longer than documented, with these faults: %s",
			role, took.Round(time.Millisecond), since(h, from), (late - allowance).Round(time.Millisecond), strings.Join(met, "; "))
	} else if took-time.Duration(blocked) > mostLeases*s.Lease {
		v.violation(Vacancy, to, "%s: vacant for %v from %v, longer than %d leases, with these faults: %s",
			role, took.Round(time.Millisecond), since(h, from), mostLeases, strings.Join(met, "; "))
	}
}

// ofServer reports whether a server answered late because of a fault of the server.
// Such a fault has a separate bound.
func ofServer(h *record.History, late record.Fault) bool {
	return slices.ContainsFunc(h.Faults, func(f record.Fault) bool {
		return f.Kind != Overload && bounds[f.Kind].blocks && f.From < late.To && f.To > late.From
	})
}
