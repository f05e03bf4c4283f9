package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// meter measures the load of this process from the files in /proc. It is not
// safe for concurrent use.
type meter struct {
	root  fs.FS     // of the file system with /proc
	spent float64   // seconds of processor time at the last measurement
	at    time.Time // time of the last measurement by the machine's clock, not the node's

	bounds   limits
	boundsAt time.Time // when bounds were read
}

// limitsAge is how old the limits of the control groups may be: reading them
// takes longer than all other files, and they rarely change.
const limitsAge = time.Minute

// newMeter starts a measurement. It fails on systems without /proc.
func newMeter(root fs.FS) (*meter, error) {
	m := &meter{root: root}
	err := m.readProcessorTime()
	return m, err
}

// measure returns the process's use of the available processor time, since the last call,
// and of the available memory, in percent.
func (m *meter) measure() (cpu, memory float64, err error) {
	if now := time.Now(); now.Sub(m.boundsAt) >= limitsAge {
		m.bounds, m.boundsAt = readLimits(m.root), now
	}
	cpu, cpuErr := m.processors(m.bounds.cpus)
	memory, memoryErr := m.memory(m.bounds.memory)
	return cpu, memory, errors.Join(cpuErr, memoryErr)
}

func (m *meter) processors(quota float64) (percent float64, err error) {
	spent, at := m.spent, m.at
	if err := m.readProcessorTime(); err != nil {
		return 0, err
	}
	usable := float64(runtime.GOMAXPROCS(0))
	if quota > 0 {
		usable = min(usable, quota)
	}
	return percentage(m.spent-spent, m.at.Sub(at).Seconds()*usable), nil
}

// ticksPerSecond is the unit of processor time in /proc, fixed on all Linux platforms of
// Go.
const ticksPerSecond = 100

// readProcessorTime parses the fields after the last parenthesis, where the
// command's name ends.
func (m *meter) readProcessorTime() error {
	stat, err := fs.ReadFile(m.root, "proc/self/stat")
	if err != nil {
		return fmt.Errorf("measure processor time: %w", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return errors.New("measure processor time: proc/self/stat is too short")
	}
	user, userErr := strconv.ParseFloat(fields[11], 64)
	system, systemErr := strconv.ParseFloat(fields[12], 64)
	m.spent, m.at = (user+system)/ticksPerSecond, time.Now()
	return errors.Join(userErr, systemErr)
}

func (m *meter) memory(limit float64) (percent float64, err error) {
	resident, residentErr := m.size("proc/self/status", "VmRSS:")
	usable, machineErr := m.size("proc/meminfo", "MemTotal:")
	if limit > 0 {
		usable = min(usable, limit) // without a limit, a group can report a huge number
	}
	return percentage(resident, usable), errors.Join(residentErr, machineErr)
}

// size returns the value of the line "KEY N kB" of a file in bytes.
func (m *meter) size(file, key string) (value float64, err error) {
	content, err := fs.ReadFile(m.root, file)
	if err != nil {
		return 0, fmt.Errorf("measure memory: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			value, err = strconv.ParseFloat(fields[1], 64)
			return value * 1024, err
		}
	}
	return 0, fmt.Errorf("measure memory: %s has no %s", file, key)
}

// percentage returns part/whole in percent, from 0 to 100.
func percentage(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(100, max(0, 100*part/whole))
}
