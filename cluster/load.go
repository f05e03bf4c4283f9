package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// meter measures how busy this process is. One goroutine uses it.
type meter struct {
	process *process.Process
	root    fs.FS // where the limits of the control groups are read

	// The last measurement. Processor time is the machine's, so it is compared
	// with the machine's clock, whatever clock the node goes by.
	spent float64 // seconds of processor time
	at    time.Time
}

// newMeter begins to measure.
func newMeter(ctx context.Context) (*meter, error) {
	own, err := process.NewProcessWithContext(ctx, int32(os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("looking at this process: %w", err)
	}
	m := &meter{process: own, root: os.DirFS("/")}
	m.spent, m.at, err = m.processorTime(ctx)
	return m, err
}

// measure returns what the process used since the last call of the processors
// that it may use, and uses of the memory that it may use, both in percent.
func (m *meter) measure(ctx context.Context) (cpu, memory float64, err error) {
	bounds := readLimits(m.root)
	cpu, cpuErr := m.processors(ctx, bounds.cpus)
	memory, memoryErr := m.memory(ctx, bounds.memory)
	return cpu, memory, errors.Join(cpuErr, memoryErr)
}

func (m *meter) processors(ctx context.Context, quota float64) (percent float64, err error) {
	spent, at, err := m.processorTime(ctx)
	if err != nil {
		return 0, err
	}
	used, passed := spent-m.spent, at.Sub(m.at).Seconds()
	m.spent, m.at = spent, at
	usable := float64(runtime.GOMAXPROCS(0))
	if quota > 0 {
		usable = min(usable, quota)
	}
	return percentage(used, passed*usable), nil
}

func (m *meter) processorTime(ctx context.Context) (seconds float64, at time.Time, err error) {
	times, err := m.process.TimesWithContext(ctx)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("measuring processor time: %w", err)
	}
	return times.User + times.System, time.Now(), nil
}

func (m *meter) memory(ctx context.Context, limit float64) (percent float64, err error) {
	own, err := m.process.MemoryInfoWithContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("measuring memory: %w", err)
	}
	machine, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("measuring the machine's memory: %w", err)
	}
	usable := float64(machine.Total)
	if limit > 0 {
		usable = min(usable, limit) // a group without a limit can have a huge one
	}
	return percentage(float64(own.RSS), usable), nil
}

// percentage returns a part of a whole in percent, from 0 to 100.
func percentage(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(100, max(0, 100*part/whole))
}
