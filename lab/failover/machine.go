package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/stat on Linux.
const clockTick = 10 * time.Millisecond

// machineState is what the kernel counted up to a moment. Systems without /proc
// have an empty one.
type machineState struct {
	waited       map[string]time.Duration // by thread: ready to run, without a processor
	steal        time.Duration
	busy, total  time.Duration // of all processors
	runQueue     int
	hasProcessor bool
}

// observe reads the kernel's counters of the processors, the nodes and the server.
func (b *bench) observe() machineState {
	const proc = "/proc" // not on every system: then nothing is found
	m := machineState{waited: map[string]time.Duration{}}
	if text, err := os.ReadFile(filepath.Join(proc, "stat")); err == nil {
		m.addProcessors(string(text))
	}
	for _, c := range b.nodes() {
		m.addThreads(proc, c.PID())
	}
	server := b.server.PID()
	text, _ := os.ReadFile(filepath.Join(proc, fmt.Sprintf("%d/task/%d/children", server, server))) // or none
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			m.addThreads(proc, pid)
		}
	}
	return m
}

// addProcessors reads /proc/stat.
func (m *machineState) addProcessors(text string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 8 && fields[0] == "cpu":
			m.hasProcessor = true
			for i, field := range fields[1:9] { // user nice system idle iowait irq softirq steal
				n, _ := strconv.ParseInt(field, 10, 64) // 0 if the kernel prints something else
				took := time.Duration(n) * clockTick
				m.total += took
				if i != 3 && i != 4 {
					m.busy += took
				}
				if i == 7 {
					m.steal = took
				}
			}
		case len(fields) == 2 && fields[0] == "procs_running":
			m.runQueue, _ = strconv.Atoi(fields[1])
		}
	}
}

// addThreads reads how long the threads of a process waited for a processor.
func (m *machineState) addThreads(proc string, pid int) {
	paths, _ := filepath.Glob(filepath.Join(proc, strconv.Itoa(pid), "task", "*", "schedstat")) // the pattern is well-formed
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text))
		if len(fields) != 3 {
			continue
		}
		if waited, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			m.waited[path] = time.Duration(waited)
		}
	}
}

// addTo adds to the facts what the kernel counted from m until after. No thread of a
// round waited longer than the round took: what is counted beyond it came after.
func (m *machineState) addTo(f *facts, after machineState, took time.Duration) {
	observed := false
	var longest time.Duration
	for thread, waited := range after.waited {
		if earlier, found := m.waited[thread]; found {
			observed = true
			longest = max(longest, waited-earlier)
		}
	}
	if observed {
		wait := inMilliseconds(min(longest, took))
		f.CPUWait = &wait
	}
	if !m.hasProcessor || !after.hasProcessor {
		return
	}
	steal, queue := inMilliseconds(min(after.steal-m.steal, took)), after.runQueue
	f.Steal, f.RunQueue = &steal, &queue
	if total := after.total - m.total; total > 0 {
		busy := float64((after.busy-m.busy)*100/total) / 100
		f.Busy = &busy
	}
}
