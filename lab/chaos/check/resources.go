package check

import (
	"slices"
	"time"

	"github.com/exactly-one/tenure/lab/chaos/record"
)

// How much more a process may use in the last third of its life than in the first:
// the median of each is compared. What a node uses depends on how many roles it
// leads, so a term more allows a little more.
const (
	warmUp          = 10 * time.Second // after the start of a process
	fewestSamples   = 9
	heapFactor      = 1.5
	heapMore        = 8 << 20 // bytes
	descriptorsMore = 15
	goroutinesMore  = 40
	perTerm         = 8 // goroutines for a term more
)

// checkResources checks that memory, descriptors and goroutines stay flat in every
// process that lived long enough.
func checkResources(h *record.History, v *Verdict) {
	processes := map[string][]record.Sample{}
	for _, s := range h.Samples {
		processes[s.Process] = append(processes[s.Process], s)
	}
	for process, samples := range processes {
		for len(samples) > 0 && samples[0].At < processes[process][0].At+int64(warmUp) {
			samples = samples[1:]
		}
		if len(samples) < fewestSamples {
			continue
		}
		third := len(samples) / 3
		first, last := medians(samples[:third]), medians(samples[len(samples)-third:])
		terms := max(0, last.Terms-first.Terms)
		if float64(last.Heap) > heapFactor*float64(first.Heap)+heapMore {
			v.violation(Resources, last.At, "%s: the heap grew from %d to %d KiB", process, first.Heap>>10, last.Heap>>10)
		}
		if last.Descriptors > first.Descriptors+descriptorsMore {
			v.violation(Resources, last.At, "%s: the descriptors grew from %d to %d", process, first.Descriptors, last.Descriptors)
		}
		if last.Goroutines > first.Goroutines+goroutinesMore+perTerm*terms {
			v.violation(Resources, last.At, "%s: the goroutines grew from %d to %d", process, first.Goroutines, last.Goroutines)
		}
	}
}

func medians(samples []record.Sample) record.Sample {
	return record.Sample{
		At:          samples[len(samples)-1].At,
		Heap:        median(samples, func(s record.Sample) uint64 { return s.Heap }),
		Descriptors: median(samples, func(s record.Sample) int { return s.Descriptors }),
		Goroutines:  median(samples, func(s record.Sample) int { return s.Goroutines }),
		Terms:       median(samples, func(s record.Sample) int { return s.Terms }),
	}
}

func median[T uint64 | int](samples []record.Sample, of func(record.Sample) T) T {
	var all []T
	for _, s := range samples {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
