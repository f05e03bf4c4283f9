//go:build linux

package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lab/chaos/record"
)

const (
	lookInterval   = time.Millisecond
	looksPerReport = 100
	sampleInterval = 2 * time.Second
)

// trust is what the watch knows of an election.
type trust struct {
	term, since int64 // the valid term at the last look, and when it was first seen
}

// watch looks once a millisecond which terms this process trusts. The process may be
// interrupted within a look, so a term counts from after the first look that saw it
// to before the last one: an overlap is one for certain. A term that has ended is
// never valid again, so it was valid between two looks that saw the same number.
func watch(n *tenure.Node, elections []*tenure.Election) {
	known := make([]trust, len(elections))
	isConnected := false
	last := record.Now()
	for look := 1; ; look++ {
		before := record.Now()
		for i, election := range elections {
			var number int64
			if term := election.Term(); term != nil {
				number = term.Number()
			}
			if number == known[i].term {
				continue
			}
			role := election.Role().Name()
			if known[i].term != 0 {
				send(followed, message{Role: role, Term: known[i].term, From: known[i].since, To: last})
			}
			known[i] = trust{number, record.Now()}
			if number != 0 {
				send(leads, message{Role: role, Term: number, From: known[i].since})
			}
		}
		last = before
		if now := n.Connected(); now != isConnected {
			isConnected = now
			send(connected, message{Holds: now, To: before})
		}
		if look%looksPerReport == 0 {
			send(alive, message{To: before})
		}
		time.Sleep(lookInterval)
	}
}

// sample reports regularly what this process uses. The pool of the writers is not
// Tenure's, and may grow to its limit.
func (n *node) sample(elections []*tenure.Election) {
	for range time.Tick(sampleInterval) {
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		s := record.Sample{
			Process: n.name, At: record.Now(), Heap: memory.HeapAlloc, Resident: residentMemory(),
			Descriptors: descriptors() - int(n.pool.Stat().TotalConns()), Goroutines: runtime.NumGoroutine(),
		}
		for _, election := range elections {
			if election.IsLeader() {
				s.Terms++
			}
		}
		send(sampled, message{Sample: &s})
	}
}

func residentMemory() uint64 {
	content, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(content))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64) // the kernel writes numbers
	return pages * uint64(os.Getpagesize())          //nolint:gosec // it is positive
}

func descriptors() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(all)
}
