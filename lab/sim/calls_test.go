package sim

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/exactly-one/tenure/internal/simcalls"
)

var (
	callsTo   = flag.String("calls", "", "a file to which TestCallsAreRecorded writes the calls of -schedules schedules from -first-seed on, for the test of that name in ./postgres")
	callsLike = flag.String("defect", "", "the name of a field of Defects that TestCallsAreRecorded sets")
)

// TestCallsAreRecorded records what the simulated database receives.
func TestCallsAreRecorded(t *testing.T) {
	count := 8
	if *callsTo != "" {
		count = *schedules
	}
	recorded := make([][]simcalls.Call, count)
	turns := make(chan int, count)
	for i := range count {
		turns <- i
	}
	close(turns)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range turns {
				schedule := scheduled(*firstSeed + uint64(i))
				schedule.Calls = true
				if *callsLike != "" {
					reflect.ValueOf(&schedule.Defects).Elem().FieldByName(*callsLike).SetBool(true)
				}
				result := run(t, schedule)
				if result.Violation != nil && *callsLike == "" {
					t.Errorf("seed %d: %v", schedule.Seed, result.Violation)
				}
				recorded[i] = result.Calls
			}
		})
	}
	workers.Wait()

	var all []simcalls.Call
	kinds := map[simcalls.Kind]int{}
	for _, calls := range recorded {
		all = append(all, calls...)
	}
	for _, c := range all {
		kinds[c.Kind]++
	}
	var stored bytes.Buffer
	if err := simcalls.Write(&stored, all); err != nil {
		t.Fatal(err)
	}
	t.Logf("seeds from %d on: %d calls of %d schedules: %v; %d kB", *firstSeed, len(all), count, kinds, stored.Len()>>10)
	if *callsTo != "" {
		if err := os.WriteFile(*callsTo, stored.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	read := 0
	err := simcalls.Read(&stored, func(c simcalls.Call) error {
		if !reflect.DeepEqual(c, all[read]) {
			return errors.New("another call is read than was written")
		}
		read++
		return nil
	})
	if err != nil || read != len(all) {
		t.Errorf("%d of %d calls are read again, error %v", read, len(all), err)
	}
	for _, kind := range []simcalls.Kind{
		simcalls.Opens, simcalls.Locks, simcalls.Closes, simcalls.Begins, simcalls.Ends, simcalls.Frees, simcalls.Beats,
		simcalls.Deaths, simcalls.Watches, simcalls.Fences, simcalls.Unfences,
	} {
		if kinds[kind] == 0 {
			t.Errorf("%d schedules have no call of the kind %q", count, kind)
		}
	}
}
