package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

var (
	schedules = flag.Int("schedules", schedulesFromEnvironment(), "how many schedules TestSchedules runs")
	firstSeed = flag.Uint64("first-seed", 1, "the seed of the first schedule")
	seed      = flag.Uint64("seed", 1, "the seed that TestReplay runs")
)

func schedulesFromEnvironment() int {
	if n, err := strconv.Atoi(os.Getenv("TENURE_SIM_N")); err == nil {
		return n
	}
	return 2000
}

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // most of what a schedule allocates is garbage when it ends
	}
	goleak.VerifyTestMain(m)
}

// run runs a schedule in a bubble. A bubble that does not end, because
// something waits forever, is a failure like any other.
func run(t *testing.T, s Schedule) (result Result) {
	defer func() {
		if r := recover(); r != nil {
			result.Violation = &Violation{What: fmt.Sprint(r)}
		}
	}()
	synctest.Test(t, func(*testing.T) { s.Run(&result) })
	return result
}

// scheduled returns the schedule of a seed. Every eighth is one of a cluster.
func scheduled(seed uint64) Schedule { return Schedule{Seed: seed, Cluster: seed%8 == 0} }

// TestSchedules runs many seeds, on every processor.
func TestSchedules(t *testing.T) {
	count := int64(*schedules)
	if testing.Short() {
		count = min(count, 300)
	}
	var next atomic.Int64
	var terms atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for {
					n := next.Add(1) - 1
					if n >= count || t.Failed() {
						return
					}
					seed := *firstSeed + uint64(n)
					result := run(t, scheduled(seed))
					terms.Add(int64(result.Terms))
					if result.Violation != nil {
						t.Errorf("seed %d: %v\n%s\nreplay: %s", seed, result.Violation, result.Transcript, ReplayCommand(seed))
					}
				}
			})
		}
	})
	t.Logf("%d schedules, %d terms", count, terms.Load())
}

// TestReplay runs the schedule of -seed and prints its whole transcript.
func TestReplay(t *testing.T) {
	var result Result
	synctest.Test(t, func(*testing.T) {
		schedule := scheduled(*seed)
		schedule.Full = true
		schedule.Run(&result)
	})
	t.Logf("seed %d: %d terms in %v\n%s", *seed, result.Terms, result.Lasted, result.Transcript)
	if result.Violation != nil {
		t.Error(result.Violation)
	}
}
