package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

var (
	schedules = flag.Int("schedules", schedulesFromEnvironment(), "how many schedules TestSchedules runs")
	firstSeed = flag.Uint64("first-seed", 1, "the seed of the first schedule")
	resultTo  = flag.String("result", "", "a file to which TestSchedules writes its result; then it runs all schedules, whatever they violate")
	models    = flag.Bool("models-only", false, "nothing but a step that the models do not allow fails TestSchedules")
	stepsTo   = flag.String("steps", "", "a file to which TestReplayPrintsItsTranscript writes the steps, for: go run ./lab/model -replay=FILE")
	seed      = flag.Uint64("seed", 1, "the seed that TestReplayPrintsItsTranscript runs")
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
		count = min(count, 50)
	}
	var next atomic.Int64
	var sum summary
	t.Run("seeds", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for {
					n := next.Add(1) - 1
					if n >= count || t.Failed() && *resultTo == "" {
						return
					}
					seed := *firstSeed + uint64(n)
					schedule := scheduled(seed)
					if *models {
						schedule.Oracles = ModelsOnly
					}
					result := run(t, schedule)
					sum.add(seed, result)
					if result.Violation != nil {
						t.Errorf("seed %d: %v\n%s\nreplay: %s", seed, result.Violation, result.Transcript, ReplayCommand(seed))
					}
				}
			})
		}
	})
	t.Logf("%d schedules, %d terms, %d replayed steps", sum.Schedules, sum.Terms, sum.Steps)
	if *resultTo != "" {
		sum.write(t, *resultTo)
	}
}

// summary is the result of many schedules, as lab/sim/parts reads it.
type summary struct {
	mu         sync.Mutex
	Schedules  int               `json:"schedules"`
	Terms      int               `json:"terms"`
	Steps      int               `json:"steps"` // that were replayed
	Violations []seededViolation `json:"violations"`
}

// seededViolation is a violation and the seed of its schedule.
type seededViolation struct {
	Seed uint64 `json:"seed"`
	What string `json:"what"`
}

func (s *summary) add(seed uint64, r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Schedules++
	s.Terms += r.Terms
	s.Steps += r.Replayed
	if r.Violation != nil {
		s.Violations = append(s.Violations, seededViolation{seed, r.Violation.Error()})
	}
}

func (s *summary) write(t *testing.T, path string) {
	content, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestReplayPrintsItsTranscript runs the schedule of -seed and prints its whole transcript.
func TestReplayPrintsItsTranscript(t *testing.T) {
	var result Result
	synctest.Test(t, func(*testing.T) {
		schedule := scheduled(*seed)
		schedule.Full, schedule.Steps = true, *stepsTo != ""
		schedule.Run(&result)
	})
	if *stepsTo != "" {
		result.writeSteps(t, *stepsTo)
	}
	t.Logf("seed %d: %d terms in %v\n%s", *seed, result.Terms, result.Lasted, result.Transcript)
	if result.Violation != nil {
		t.Error(result.Violation)
	}
}
