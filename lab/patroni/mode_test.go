//go:build linux

package main

import (
	"slices"
	"testing"
	"time"
)

func TestModesAreChosenByName(t *testing.T) {
	for options, want := range map[string]int{"both": 2, "all": len(modes), "sync,haproxy": 2} {
		chosen, err := chooseModes(options)
		if err != nil || len(chosen) != want {
			t.Errorf("%q: %d modes, %v; want %d", options, len(chosen), err, want)
		}
	}
	if _, err := chooseModes("sync,nothing"); err == nil {
		t.Error("an unknown mode was accepted")
	}
}

func TestModesAllowTheirKinds(t *testing.T) {
	for option, want := range map[string]struct{ allowed, excluded string }{
		"async":   {"split", "proxy-kill"},
		"wait":    {"split", "kill"},
		"haproxy": {"proxy-kill", ""},
	} {
		chosen, err := chooseModes(option)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, k := range chosen[0].among(kinds, true) {
			names = append(names, k.name)
		}
		if !slices.Contains(names, want.allowed) || slices.Contains(names, want.excluded) {
			t.Errorf("mode %s has %q; want %s among them and not %s", option, names, want.allowed, want.excluded)
		}
	}
	for _, k := range modes[0].among(kinds, false) {
		if k.namespaces {
			t.Errorf("%s needs namespaces, and there are none", k.name)
		}
	}
}

func TestSharesAddUpToAllFaults(t *testing.T) {
	for _, failovers := range []int{1, 10, 200} {
		sum := 0
		for i := range modes {
			sum += share(failovers, i, modes, kinds)
		}
		if sum != failovers {
			t.Errorf("the modes get %d faults, want %d", sum, failovers)
		}
	}
}

// Two nodes lead in a split, unless replication is synchronous or FailoverWait
// covers it; anything else differs from the documents.
func TestSplitsAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		synchronous      bool
		endSessions      bool
		failoverWait     time.Duration
		split, bothTrust float64
		violation        bool
	}{
		"asynchronous":                 {split: 5000, bothTrust: 1000},
		"asynchronous, one leader":     {split: 5000, violation: true},
		"asynchronous, no split":       {bothTrust: 1000, violation: true},
		"sessions are ended":           {endSessions: true, split: 5000},
		"synchronous":                  {synchronous: true},
		"synchronous, two leaders":     {synchronous: true, bothTrust: 1, violation: true},
		"covered by FailoverWait":      {failoverWait: 20 * time.Second, split: 5000},
		"covered, and yet two leaders": {failoverWait: 20 * time.Second, split: 5000, bothTrust: 1, violation: true},
	} {
		b := &bed{mode: mode{synchronous: test.synchronous, endSessions: test.endSessions}, options: options{lease: 4 * time.Second, failoverWait: test.failoverWait}}
		r := round{Split: test.split, BothTrust: test.bothTrust}
		b.judgeSplit(&r)
		if (r.Violation != "") != test.violation {
			t.Errorf("%s: violation %q; want one: %t", name, r.Violation, test.violation)
		}
	}
}
