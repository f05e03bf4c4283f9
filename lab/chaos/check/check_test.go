package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
)

const second = int64(time.Second)

// good is a run without a fault: node 1 leads, is killed at 20 s, and node 2 leads
// within 100 ms. Each writes once a second.
func good() *record.History {
	h := &record.History{
		Settings: record.Settings{
			Lease: 4 * time.Second, Margin: 400 * time.Millisecond, CheckInterval: time.Second,
			FenceTimeout: time.Second, WatchPeriod: 5 * time.Second, Publish: 2 * time.Second,
		},
		Roles: []string{"role-1"}, Start: 0, End: 40 * second,
		Faults: []record.Fault{{Step: "20s kill node=1", Kind: "kill", Node: 1, From: 20 * second, To: 24 * second}},
		Begins: []record.Begin{
			{Role: "role-1", Node: "n1.1", Term: 100, From: 0, To: second / 2},
			{Role: "role-1", Node: "n2.1", Term: 101, From: 20 * second, To: 20*second + second/10},
		},
		Leads: []record.Lead{
			{Role: "role-1", Node: "n1.1", Term: 100, From: second / 2, To: 20 * second},
			{Role: "role-1", Node: "n2.1", Term: 101, From: 20*second + second/10, To: 40 * second},
		},
		Schedules: map[string]string{"most": "at_most_once", "least": "at_least_once"},
	}
	for i := range int64(30) {
		w := record.Write{Role: "role-1", Node: "n1.1", Term: 100, Sequence: i + 1, Position: i + 1, From: (i + 1) * second, To: (i+1)*second + second/2}
		if i >= 15 {
			w.Node, w.Term, w.Sequence = "n2.1", 101, i-14
			w.From, w.To = w.From+6*second, w.To+6*second
		}
		h.Writes = append(h.Writes, w)
		h.Ledger = append(h.Ledger, record.Entry{Role: w.Role, Position: w.Position, Term: w.Term, Sequence: w.Sequence})
		id := fmt.Sprint("e", i)
		h.Appended = append(h.Appended, record.Append{ID: id, At: w.From})
		h.Events = append(h.Events, record.Event{ID: id, Amount: i, Applied: 1, Letters: 1})
		h.ViewSum += i
		h.Backlogs = append(h.Backlogs, record.Backlog{From: i * second, To: i*second + second/100, Behind: i})
		h.Figures = append(h.Figures, record.Figure{From: (i + 2) * second, To: (i+2)*second + second/100, Behind: i, Age: 2 * second})
		h.Deliveries = append(h.Deliveries, record.Delivery{ID: id, Term: w.Term, At: w.To})
		h.Samples = append(h.Samples, record.Sample{Process: "n2.1", At: i * second, Heap: 5 << 20, Descriptors: 20, Goroutines: 100})
		for j, schedule := range []string{"most", "least"} {
			run := record.Run{Schedule: schedule, ID: 2*i + int64(j), ScheduledFor: i * second, Ticks: 1, State: "succeeded", Effects: 1}
			h.Runs = append(h.Runs, run)
			h.Ticks = append(h.Ticks, record.Tick{Schedule: schedule, Run: run.ID, Attempt: 1, At: i * second})
		}
	}
	return h
}

// fault adds a fault.
func fault(h *record.History, kind string, node int, from, to int64) {
	h.Faults = append(h.Faults, record.Fault{Step: kind, Kind: kind, Node: node, From: from, To: to})
}

func TestGoodHistoriesPass(t *testing.T) {
	for name, change := range map[string]func(*record.History){
		"unchanged": func(*record.History) {},
		"a write without an answer is in the ledger": func(h *record.History) {
			h.Writes = slices.Delete(h.Writes, 14, 15)
		},
		"an overlap of a network delay after sessions were terminated": func(h *record.History) {
			fault(h, "terminate-sessions", 0, 20*second, 20*second+second/100)
			h.Leads[0].To += second / 2
		},
		"an overlap during a fast shutdown, since no message reaches the leader": func(h *record.History) {
			fault(h, "cut-to-node", 1, 19*second, 30*second)
			fault(h, "server-restart", 0, 20*second, 20*second+second/2)
			h.Leads[0].To = h.Leads[1].From + second/20
		},
		"an overlap of a trust window, since no message reaches the leader": func(h *record.History) {
			fault(h, "terminate-sessions", 0, 20*second, 20*second+second/100)
			fault(h, "cut", 1, 19*second, 30*second)
			h.Leads[0].To += 3 * second
		},
		"a vacancy of many leases, since the server did not run": func(h *record.History) {
			fault(h, "server-kill", 0, 20*second, 120*second)
			h.End, h.Leads[1].From, h.Leads[1].To = 150*second, 121*second, 150*second
		},
		"a silent leader is replaced after its lease": func(h *record.History) {
			h.Faults[0].Kind = "freeze"
			h.Leads[1].From = 25 * second
		},
		"no node leads while the machine is too busy": func(h *record.History) {
			fault(h, check.Overload, 0, 20*second, 25*second)
			h.Leads[1].From = 35 * second
		},
		"no node leads while the server is stopped": func(h *record.History) {
			fault(h, "server-stop", 0, 20*second, 30*second)
			h.Leads[1].From = 34 * second
		},
		"an abandoned run": func(h *record.History) {
			h.Runs[4].State, h.Runs[4].Effects = "abandoned", 0
		},
		"a repeated run": func(h *record.History) {
			h.Ticks = append(h.Ticks, record.Tick{Schedule: "least", Run: 5, Attempt: 2})
		},
		"missed ticks that share a row": func(h *record.History) {
			h.Runs = slices.Delete(h.Runs, 10, 14)
			for i := range h.Runs {
				if h.Runs[i].ScheduledFor == 7*second {
					h.Runs[i].State, h.Runs[i].Ticks = "missed", 3
				}
			}
			h.Ticks = slices.DeleteFunc(h.Ticks, func(tick record.Tick) bool { return tick.Run/2 == 7 })
		},
		"ticks while a schedule may have been paused": func(h *record.History) {
			h.Pauses = []record.Pause{{Schedule: "most", From: 4*second + second/2, To: 6*second + second/2}}
			h.Runs = slices.DeleteFunc(h.Runs, func(r record.Run) bool {
				return r.Schedule == "most" && (r.ScheduledFor == 5*second || r.ScheduledFor == 6*second)
			})
		},
		"a requested run": func(h *record.History) {
			h.Runs = append(h.Runs, record.Run{Schedule: "most", ID: 99, ScheduledFor: 5*second + 1, Ticks: 1, State: "succeeded", Effects: 1, Manual: true})
			h.Ticks = append(h.Ticks, record.Tick{Schedule: "most", Run: 99, Attempt: 1})
		},
		"an old figure while the leader of the view was frozen": func(h *record.History) {
			h.Faults = nil
			fault(h, "freeze", 2, 18*second, 30*second)
			h.Figures[20].Age, h.Figures[20].Behind, h.Figures[15].Leader = 23*second, 0, "n2.1"
		},
		"an old figure while the server did not answer": func(h *record.History) {
			fault(h, "server-stop", 0, 5*second, 20*second)
			h.Figures[20].Age = 21 * second
		},
		"a backlog that grows and shrinks between two looks": func(h *record.History) {
			for range 20 {
				h.Appended = append(h.Appended, record.Append{ID: "e7", At: 20*second + second/2})
			}
			h.Figures[20].Behind = 40
		},
		"a message that is repeated after others": func(h *record.History) {
			h.Deliveries = append(h.Deliveries, h.Deliveries[20])
		},
		"a heap that grows a little": func(h *record.History) {
			for i := range h.Samples {
				h.Samples[i].Heap += uint64(i) << 17
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			change(h)
			if v := check.Check(h); len(v.Violations) > 0 {
				t.Error(v.Violations)
			}
		})
	}
}

// Every kind of violation is seen.
func TestViolationsOfHistoriesAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		kind, text string
		change     func(*record.History)
	}{
		"a term with a smaller number": {check.Linearizability, "term 99 of n2.1 began after 20s", func(h *record.History) {
			h.Begins[1].Term = 99
		}},
		"a term number that returns": {check.Linearizability, "no order explains", func(h *record.History) {
			h.Begins[1].Term = 100
		}},
		"a write of an old term is acknowledged after the next began": {check.Linearizability, "no order explains", func(h *record.History) {
			h.Writes[14].From, h.Writes[14].To = 25*second, 26*second
		}},
		"a write without an answer is committed in the next term": {check.Linearizability, "no order explains", func(h *record.History) {
			h.Ledger[20].Term, h.Writes = 100, slices.Delete(h.Writes, 20, 21)
		}},
		"writes out of order": {check.Order, "write 21 of term 100 was committed after a write of term 101", func(h *record.History) {
			h.Ledger[20].Term, h.Ledger[20].Sequence = 100, 21
		}},
		"a hole in the ledger": {check.Order, "position 12 follows position 10", func(h *record.History) {
			h.Ledger = slices.Delete(h.Ledger, 10, 11)
		}},
		"an acknowledged write is gone": {check.LostWrite, "write 15 of term 101 is gone", func(h *record.History) {
			h.Ledger = h.Ledger[:29]
		}},
		"two leaders": {check.Overlap, "both trusted their terms for 50ms from 20.1s", func(h *record.History) {
			h.Leads[0].To += 15 * second / 100
		}},
		"two leaders after sessions were terminated, for too long": {check.Overlap, "for 2s", func(h *record.History) {
			fault(h, "terminate-sessions", 0, 20*second, 20*second+second/100)
			h.Leads[0].To = h.Leads[1].From + 2*second
		}},
		"two leaders for longer than a trust window": {check.Overlap, "for 3.7s", func(h *record.History) {
			fault(h, "terminate-sessions", 0, 20*second, 20*second+second/100)
			fault(h, "cut", 1, 19*second, 30*second)
			h.Leads[0].To = h.Leads[1].From + 37*second/10
		}},
		"two leaders after a crash of the server": {check.Overlap, "for 500ms", func(h *record.History) {
			fault(h, "cut-to-node", 1, 19*second, 30*second)
			fault(h, "server-kill", 0, 20*second, 20*second+second/2)
			h.Leads[0].To = h.Leads[1].From + second/2
		}},
		"two leaders long after sessions were terminated": {check.Overlap, "for 500ms", func(h *record.History) {
			fault(h, "terminate-sessions", 0, 10*second, 10*second+second/100)
			h.Leads[0].To = h.Leads[1].From + second/2
		}},
		"two leaders, and another node was reset": {check.Overlap, "for 500ms", func(h *record.History) {
			fault(h, "reset", 3, 20*second, 20*second+second/100)
			h.Leads[0].To = h.Leads[1].From + second/2
		}},
		"a vacancy after a kill": {check.Vacancy, "vacant for 7s from 20s, 2s longer than documented, with these faults: 20s kill node=1", func(h *record.History) {
			h.Leads[1].From = 27 * second
		}},
		"a vacancy without a fault": {check.Vacancy, "vacant for 6s from 9s", func(h *record.History) {
			h.Leads[0].From = 15 * second
			h.Leads = append(h.Leads, record.Lead{Role: "role-1", Node: "n1.1", Term: 99, From: second, To: 9 * second})
		}},
		"a vacancy after the server came back": {check.Vacancy, "vacant for 18s", func(h *record.History) {
			h.Faults[0] = record.Fault{Kind: "server-kill", From: 20 * second, To: 22 * second}
			h.Leads[1].From = 38 * second
		}},
		"a vacancy after the server came back, which had answered late": {check.Vacancy, "vacant for 18s", func(h *record.History) {
			h.Faults[0] = record.Fault{Kind: "server-kill", From: 20 * second, To: 22 * second}
			fault(h, check.Overload, 0, 21*second, 24*second)
			h.Leads[1].From = 38 * second
		}},
		"a role that stays vacant": {check.Vacancy, "vacant for 15s from 25s", func(h *record.History) {
			h.Leads[1].To = 25 * second
			h.Faults = nil
		}},
		"a vacancy in which every fault would excuse the last seconds": {check.Vacancy, "vacant for 2m0s from 20s, longer than 15 leases", func(h *record.History) {
			h.End, h.Leads[1].From, h.Leads[1].To = 150*second, 140*second, 150*second
			for at := 24 * second; at < 140*second; at += 4 * second {
				fault(h, "freeze", 2, at, at+2*second)
			}
		}},
		"a role without a leader": {check.Vacancy, "role-2: no node led", func(h *record.History) {
			h.Roles = append(h.Roles, "role-2")
		}},
		"a fault that was not carried out excuses nothing": {check.Vacancy, "vacant for 12s", func(h *record.History) {
			h.Faults[0].Kind, h.Faults[0].Failed = "freeze", "the process had ended"
			h.Leads[1].From = 32 * second
		}},
		"a run that happened twice":            {check.Ticks, "most: the run of 00:00:02, which is succeeded, happened more than once", func(h *record.History) { h.Ticks = append(h.Ticks, record.Tick{Schedule: "most", Run: 4, Attempt: 2}) }},
		"a run that committed twice":           {check.Ticks, "committed 2 times", func(h *record.History) { h.Runs[4].Effects = 2 }},
		"a run that has not ended":             {check.Ticks, "has not ended", func(h *record.History) { h.Runs[5].State = "running" }},
		"an abandoned run that must be redone": {check.Ticks, "must be repeated", func(h *record.History) { h.Runs[5].State = "abandoned" }},
		"a run that succeeded without a trace": {check.Ticks, "left no trace", func(h *record.History) { h.Runs[5].Effects = 0 }},
		"a skipped run that was started":       {check.Ticks, "was started", func(h *record.History) { h.Runs[5].State = "skipped" }},
		"a run that panicked":                  {check.Ticks, "must not be in this state", func(h *record.History) { h.Runs[5].State = "panicked" }},
		"a tick that is claimed twice":         {check.Ticks, "was claimed twice", func(h *record.History) { h.Runs[6].ScheduledFor = h.Runs[4].ScheduledFor }},
		"a tick that is never claimed":         {check.Ticks, "1 ticks before 1970-01-01 00:00:06 +0000 UTC were never claimed", func(h *record.History) { h.Runs = slices.Delete(h.Runs, 10, 11) }},
		"a schedule that never ticks":          {check.Ticks, "other never ticked", func(h *record.History) { h.Schedules["other"] = "at_most_once" }},
		"an event that is applied twice":       {check.Events, "applied event e7 2 times", func(h *record.History) { h.Events[7].Applied = 2 }},
		"an event that is not applied":         {check.Events, "applied event e7 0 times", func(h *record.History) { h.Events[7].Applied = 0 }},
		"a sum that is wrong":                  {check.Events, "the view's sum is 436; the sum of the log is 435", func(h *record.History) { h.ViewSum++ }},
		"an event that is gone":                {check.Events, "event x is gone", func(h *record.History) { h.Appended = append(h.Appended, record.Append{ID: "x"}) }},
		"a message that is never sent":         {check.Webhooks, "message e29 was never sent", func(h *record.History) { h.Deliveries = h.Deliveries[:29] }},
		"a message that was rolled back":       {check.Webhooks, "message x was sent and is not in the log", func(h *record.History) { h.Deliveries = append(h.Deliveries, record.Delivery{ID: "x"}) }},
		"messages out of order": {check.Webhooks, "message e3 came first after e4", func(h *record.History) {
			h.Deliveries[3], h.Deliveries[4] = h.Deliveries[4], h.Deliveries[3]
		}},
		"ticks that a pause does not explain": {check.Ticks, "2 ticks before 1970-01-01 00:00:07 +0000 UTC were never claimed", func(h *record.History) {
			h.Pauses = []record.Pause{{Schedule: "least", From: 4 * second, To: 7 * second}, {Schedule: "most", From: 14 * second, To: 17 * second}}
			h.Runs = slices.DeleteFunc(h.Runs, func(r record.Run) bool {
				return r.Schedule == "most" && (r.ScheduledFor == 5*second || r.ScheduledFor == 6*second)
			})
		}},
		"a schedule that rests": {check.Ticks, "most started no run for 45s from 31s, although nothing kept it", func(h *record.History) {
			h.End = 80 * second
			h.Leads[1].To = h.End
			h.Ticks = slices.DeleteFunc(h.Ticks, func(tick record.Tick) bool { return tick.Schedule == "most" && tick.At > 29*second })
			h.Ticks = append(h.Ticks, record.Tick{Schedule: "most", Run: 58, Attempt: 1, At: 31 * second})
		}},
		"a dead letter that is not replayed": {check.Events, "handled event e7 0 times", func(h *record.History) { h.Events[7].Letters = 0 }},
		"a figure that is wrong": {check.Figures, "the backlog of the view is said to be 0 as of 2s ago; it was 18 to 22", func(h *record.History) {
			h.Figures[20].Behind = 0
		}},
		"a figure that is old": {check.Figures, "the backlog of the view is 21s old", func(h *record.History) {
			h.Faults = nil
			h.Figures[25].Age = 21 * second
		}},
		"a figure that is old while another node was frozen": {check.Figures, "the backlog of the view is 23s old", func(h *record.History) {
			h.Faults = nil
			fault(h, "freeze", 2, 18*second, 30*second)
			h.Figures[25].Age, h.Figures[15].Leader = 23*second, "n1.1"
		}},
		"a figure that is older than the silence of its leader": {check.Figures, "the backlog of the view is 40s old", func(h *record.History) {
			h.Faults = nil
			fault(h, "freeze", 2, 18*second, 30*second)
			h.Figures[25].Age, h.Figures[15].Leader = 40*second, "n2.1"
		}},
		"a heap that grows":         {check.Resources, "the heap grew", func(h *record.History) { grow(h, func(s *record.Sample, i int) { s.Heap += uint64(i) << 21 }) }},
		"descriptors that leak":     {check.Resources, "the descriptors grew", func(h *record.History) { grow(h, func(s *record.Sample, i int) { s.Descriptors += 2 * i }) }},
		"goroutines that leak":      {check.Resources, "the goroutines grew", func(h *record.History) { grow(h, func(s *record.Sample, i int) { s.Goroutines += 3 * i }) }},
		"a complaint while it runs": {check.Complaint, "the schema was removed", func(h *record.History) { h.Complaints = []string{"the schema was removed"} }},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			test.change(h)
			v := check.Check(h)
			found := slices.ContainsFunc(v.Violations, func(v check.Violation) bool {
				return v.Kind == test.kind && strings.Contains(v.Text, test.text)
			})
			if !found {
				t.Errorf("got %v; want %s: %s", v.Violations, test.kind, test.text)
			}
		})
	}
}

func grow(h *record.History, change func(*record.Sample, int)) {
	for i := range h.Samples {
		change(&h.Samples[i], i)
	}
}

// Every kind of fault has a documented bound.
func TestEveryFaultHasABound(t *testing.T) {
	for _, k := range script.Kinds {
		if !check.Bounded(k.Name) {
			t.Errorf("%s has no bound", k.Name)
		}
	}
}

func TestGapsNameTheirFault(t *testing.T) {
	for _, kind := range []string{"kill", check.Overload} {
		h := good()
		if kind == check.Overload {
			fault(h, kind, 0, 19*second, 21*second)
			fault(h, "drain", 3, 20*second, 22*second)
		}
		want := check.Gap{Role: "role-1", Kind: kind, Took: 100 * time.Millisecond}
		v := check.Check(h)
		for i := range v.Gaps {
			v.Gaps[i].From, v.Gaps[i].Met = 0, "" // texts for readers
		}
		if len(v.Gaps) != 1 || v.Gaps[0] != want {
			t.Errorf("got %v; want %v", v.Gaps, want)
		}
	}
}
