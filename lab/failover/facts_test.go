package main

import (
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
)

func TestSlowRoundIsAttributed(t *testing.T) {
	crowd := 1000
	for name, test := range map[string]struct {
		facts        facts
		kind, detail string
	}{
		"a processor was taken":     {facts{CPUWait: pointer(11), Retrying: 3, Checkpoint: 20}, causeMachine, "waited 11.0 ms for a processor"},
		"the host took a processor": {facts{Steal: pointer(20), CPUWait: pointer(12)}, causeMachine, "host took 20.0 ms"},
		"a second try":              {facts{Tries: 3, Retrying: 16, CPUWait: pointer(2)}, causeTenure, "3 tries, with 16.0 ms"},
		"a courtesy":                {facts{Tries: 2, Yielding: 18}, causeTenure, "18.0 ms although no node led"},
		"a flush":                   {facts{Flushing: 15, Retrying: 2}, causeServer, "15.0 ms for the log's flush"},
		"a checkpoint":              {facts{Checkpoint: 19, CPUWait: pointer(3)}, causeServer, "checkpoint"},
		"a vacuum":                  {facts{Vacuum: 12}, causeServer, "vacuum"},
		"a death noticed late":      {facts{Noticed: pointer(14)}, causeServer, "14.0 ms late"},
		"too little of each":        {facts{CPUWait: pointer(9), Retrying: 9, Checkpoint: 9, Woken: pointer(4), Trying: 12}, causeUnknown, "in the attempts: 12.0 ms"},
		"nothing observed":          {facts{}, causeUnknown, "not observed"},
		"a death in a crowd":        {facts{Noticed: pointer(14), Busy: pointer(1), RunQueue: &crowd}, causeMachine, "14.0 ms late, with 1000 threads"},
	} {
		kind, detail := test.facts.cause(20*time.Millisecond, 0)
		if kind != test.kind || !strings.Contains(detail, test.detail) {
			t.Errorf("%s: got %s: %s, want %s: %s", name, kind, detail, test.kind, test.detail)
		}
	}
	lease := facts{Noticed: pointer(3002), Woken: pointer(3003)}
	if kind, _ := lease.cause(20*time.Millisecond, 3*time.Second); kind != causeUnknown {
		t.Errorf("a silent leader whose session ended with its lease: got %s, want %s", kind, causeUnknown)
	}
}

// at is a time in milliseconds after the fault.
func at(milliseconds int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

func call(name string, from, to int) traced {
	return traced{Call: name, From: at(from).UnixNano(), To: at(to).UnixNano()}
}

func TestCallsBecomeFacts(t *testing.T) {
	woken := call(callWait, -500, 3)
	woken.Woken = true
	yields := call(callAcquire, 12, 13)
	yields.Yields = true
	var f facts
	f.addCalls(children.Interval{From: at(0), To: at(30)}, []traced{
		call(callAcquire, -900, -899), // before the round
		woken,
		call(callAcquire, 3, 5),
		call(callHeartbeat, 6, 9),
		yields, // found it held for 7 ms before, of which a heartbeat took 3
		call(callWait, 13, 23),
		call(callAcquire, 23, 29), // and waited for 10 ms
		call(callHeartbeat, 29, 50),
	})
	if f.Woken == nil || *f.Woken != 3 {
		t.Errorf("got woken %v, want after 3 ms", f.Woken)
	}
	f.Woken = nil
	if want := (facts{Tries: 3, Trying: 9, Retrying: 4, Yielding: 10, Flushing: 4}); f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
}

func TestSlowRoundsAreThoseOverTheLimit(t *testing.T) {
	took := func(milliseconds ...int) (all []round) {
		for _, ms := range milliseconds {
			d := time.Duration(ms) * time.Millisecond
			one := round{outcome: outcome{took: d, begun: at(0), at: at(0).Add(d), leader: "n1"}}
			one.facts.Retrying = 9
			all = append(all, one)
		}
		return all
	}
	r := results{scenario: scenario{name: "sigkill"}, lease: time.Second, slow: 15 * time.Millisecond, rounds: took(3, 15, 16, 40)}
	log := parseServerLog("", at(0))
	if f := r.record(log); f.Causes[causeTenure] != 1 || f.Causes[causeUnknown] != 1 || f.Rounds[1].Cause != "" || f.Summary.Max != 40 {
		t.Errorf("got %+v, want 16 ms by Tenure, since 9 of 13 ms over the fastest were between tries, and 40 ms unknown", f)
	}
	r.scenario.slow = true
	if f := r.record(log); f.SlowAbove != 1015 || len(f.Causes) != 0 {
		t.Errorf("got %+v, want slow rounds over the lease and 15 ms", f)
	}
}

const logged = `1700000000.000 [10] LOG:  checkpoint starting: time
1700000001.250 [10] LOG:  checkpoint complete: wrote 3 buffers (0.1%); 0 WAL file(s) added, 0 removed, 0 recycled; write=1.2 s
1700000001.500 [77] tenure n7 session: LOG:  disconnection: session time: 0:00:01.500 user=postgres database=postgres host=127.0.0.1 port=1
1700000001.501 [78] tenure n7 watch: LOG:  disconnection: session time: 0:00:01.500 user=postgres database=postgres host=127.0.0.1 port=2
1700000002.000 [79] LOG:  automatic vacuum of table "postgres.public.tenure_nodes": index scans: 0
	pages: 0 removed, 1 remain, 1 scanned (100.00% of total)
	system usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.25 s
1700000003.000 [80] tenure n8 session: ERROR:  disconnection: is not what this is
1700000004.000 [10] LOG:  checkpoint starting: immediate
`

func TestServerLogBecomesFacts(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	log := parseServerLog(logged, begin.Add(10*time.Second))
	in := func(from, to time.Duration, leader string) (f facts) {
		log.addTo(&f, children.Interval{From: begin.Add(from), To: begin.Add(to)}, leader)
		return f
	}
	if f := in(time.Second, 2*time.Second, "n7"); f.Checkpoint != 250 || f.Vacuum != 250 || f.Noticed == nil || *f.Noticed != 500 {
		t.Errorf("got %+v, want 250 ms of a checkpoint, 250 ms of a vacuum, noticed after 500 ms", f)
	}
	if f := in(9*time.Second, 11*time.Second, "n7"); f.Checkpoint != 1000 || f.Noticed != nil {
		t.Errorf("got %+v, want 1000 ms of the checkpoint that has not ended, and no end of a session", f)
	}
	if f := in(time.Second, 2*time.Second, "n"); f.Noticed != nil {
		t.Errorf("got %+v, want the end of no other node's session", f)
	}
}

func TestMachineStatesBecomeFacts(t *testing.T) {
	state := func(stat string, waited map[string]time.Duration) machineState {
		m := machineState{waited: waited}
		m.addProcessors(stat)
		return m
	}
	before := state("cpu  100 0 50 1000 10 0 0 5 0 0\nprocs_running 1\n", map[string]time.Duration{"a": 1e6, "b": 5e6, "ended": 0})
	after := state("cpu  106 0 51 1002 10 0 0 6 0 0\nprocs_running 4\n", map[string]time.Duration{"a": 3e6, "b": 14e6, "new": 90e6})
	var f facts
	before.addTo(&f, after, 20*time.Millisecond)
	if value(f.CPUWait) != 9 || value(f.Steal) != 10 || value(f.Busy) != 0.8 || f.RunQueue == nil || *f.RunQueue != 4 {
		t.Errorf("got a wait of %v, steal %v, busy %v, queue %v; want 9, 10, 0.8 and 4",
			value(f.CPUWait), value(f.Steal), value(f.Busy), f.RunQueue)
	}
	before.addTo(&f, after, 7*time.Millisecond)
	if value(f.CPUWait) != 7 {
		t.Errorf("got a wait of %v, want no longer than the round", value(f.CPUWait))
	}
	f = facts{}
	(&machineState{}).addTo(&f, machineState{}, time.Second)
	if f != (facts{}) {
		t.Errorf("got %+v without /proc, want nothing", f)
	}
}
