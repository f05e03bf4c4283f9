package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

// slowDatabase simulates a database that needs a fixed time for each role.
type slowDatabase struct {
	now, each time.Duration
	calls     []int // roles in each
	fails     map[int]error
}

func (d *slowDatabase) acquire(part []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	d.now += time.Duration(len(part)) * d.each
	d.calls = append(d.calls, len(part))
	if err := d.fails[len(d.calls)]; err != nil {
		return nil, err
	}
	attempts := make([]tenure.AcquireResult, len(part))
	for i := range attempts {
		attempts[i].Outcome = tenure.OutcomeGranted
	}
	return attempts, nil
}

// outcomes counts the outcomes of one call for a thousand roles.
func outcomes(b *batcher, d *slowDatabase) (map[tenure.Outcome]int, time.Duration, error) {
	begun := d.now
	attempts, err := b.run(make([]tenure.AcquireRequest, 1000), time.Second, d.acquire)
	found := map[tenure.Outcome]int{}
	for _, a := range attempts {
		found[a.Outcome]++
	}
	return found, d.now - begun, err
}

func newBatches(d *slowDatabase) *batcher {
	return &batcher{size: firstBatch, now: func() time.Duration { return d.now }}
}

// A call for many roles leaves time for the heartbeat, and later calls finish it.
func TestBatchesLeaveTimeForHeartbeat(t *testing.T) {
	const limit = time.Second
	d := &slowDatabase{each: 3 * time.Millisecond} // 150 ms for the first part
	b := newBatches(d)
	granted := 0
	for call := 0; granted < 1000; call++ {
		found, took, err := outcomes(b, d)
		if err != nil || found[tenure.OutcomeGranted] == 0 || found[tenure.OutcomeGranted]+found[tenure.OutcomePending] != 1000 {
			t.Fatalf("call %d: %v, %v; want some granted and the rest waiting", call, found, err)
		}
		if call > 1 && took > limit/2 {
			t.Errorf("call %d took %v; want a fraction of %v", call, took, limit)
		}
		granted += found[tenure.OutcomeGranted]
	}
	fast := &slowDatabase{each: time.Microsecond}
	if found, _, err := outcomes(newBatches(fast), fast); err != nil || found[tenure.OutcomeGranted] != 1000 || len(fast.calls) > 5 {
		t.Errorf("on a fast disk: %v in calls %v, %v; want all granted in few", found, fast.calls, err)
	}
}

func TestFailedBatchKeepsEarlierOnesAndShrinksTheNext(t *testing.T) {
	cause := errors.New("cause")
	d := &slowDatabase{fails: map[int]error{2: cause, 3: cause, 5: tenure.ErrSessionLost}}
	b := newBatches(d)
	found, _, err := outcomes(b, d)
	if err != nil || found[tenure.OutcomeGranted] != 50 || found[tenure.OutcomeFailed] != 100 || found[tenure.OutcomePending] != 850 {
		t.Errorf("%v, %v; want 50 granted, 100 failed, 850 waiting", found, err)
	}
	if _, _, err := outcomes(b, d); !errors.Is(err, cause) || d.calls[2] != 50 {
		t.Errorf("calls %v end with %v; want a smaller one and the error of the first part", d.calls, err)
	}
	if _, _, err := outcomes(b, d); !errors.Is(err, tenure.ErrSessionLost) || d.calls[3] != 25 {
		t.Errorf("calls %v end with %v; want the loss of the session", d.calls, err)
	}
}
