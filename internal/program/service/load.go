package service

import (
	"os"
	"runtime"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/exactly-one/tenure"
)

// measuredLoad returns a function to measure how busy this process is: a member of a
// cluster does so itself on Linux only.
func measuredLoad() (func() tenure.Load, error) {
	own, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return nil, err
	}
	return func() (load tenure.Load) {
		if used, err := own.Percent(0); err == nil { // of one processor, since the last call
			load.CPU = min(100, used/float64(runtime.NumCPU()))
		}
		if used, err := own.MemoryPercent(); err == nil {
			load.Memory = float64(used)
		}
		return load
	}, nil
}
