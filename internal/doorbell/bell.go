package doorbell

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// quickly is how soon after a ring another one wakes the reader up.
	quickly = 20 * time.Millisecond
	// tired is how long an awake reader must find nothing before it falls asleep, and
	// overdue how long if it does not look.
	tired   = 50 * time.Millisecond
	overdue = time.Second
)

// Pause returns how long to wait before the next look, if looks have found nothing for a
// time: at most 10 ms for the first second, 25 ms for the first 10 s, and then more, up to
// a second.
func Pause(nothing, least time.Duration) time.Duration {
	most := 10 * time.Millisecond
	if nothing > time.Second {
		most = min(max(25*time.Millisecond, nothing/400), time.Second)
	}
	return max(least, min(nothing/2, most))
}

// Bell wakes one reader.
type Bell struct {
	wake  func()
	least time.Duration
	found atomic.Bool
	empty atomic.Bool
}

// New returns a bell that calls wake when the reader must look for rows. An awake reader
// looks after a pause of at least least.
func New(least time.Duration, wake func()) *Bell { return &Bell{wake: wake, least: least} }

// Looked records a look, and whether it found rows. It is safe for concurrent use.
func (b *Bell) Looked(found bool) {
	if found {
		b.found.Store(true)
	} else {
		b.empty.Store(true)
	}
}

// Attend calls wake in this goroutine when the reader must look for rows, until ctx ends
// or the line fails, and returns the error.
func (b *Bell) Attend(ctx context.Context, line Line) error {
	asleep, err := line.Shut(ctx)
	for err == nil {
		b.wake()
		if asleep {
			asleep, err = b.sleep(ctx, line)
		} else {
			asleep, err = b.stayAwake(ctx, line)
		}
	}
	return err
}

// sleep waits until rings follow each other quickly, and reports whether the reader is
// still asleep.
func (b *Bell) sleep(ctx context.Context, line Line) (asleep bool, err error) {
	var rungAt time.Time
	for asleep = true; asleep; {
		if _, err := line.Wait(ctx, 0); err != nil {
			return true, err
		}
		before := rungAt
		if rungAt = time.Now(); rungAt.Sub(before) < quickly {
			open, err := line.Open(ctx)
			if err != nil {
				return true, err
			}
			asleep = !open
		}
		if asleep {
			b.wake()
		}
	}
	return false, nil
}

// stayAwake looks until looks have found nothing for a while and the lock is free, and
// reports whether the reader is asleep.
func (b *Bell) stayAwake(ctx context.Context, line Line) (asleep bool, err error) {
	looked := false
	for foundAt := time.Now(); ; b.wake() {
		next := time.Now().Add(Pause(time.Since(foundAt), b.least))
		for left := time.Until(next); left > 0; left = time.Until(next) {
			rung, err := line.Wait(ctx, left)
			if err != nil {
				return false, err
			}
			if rung {
				b.wake()
			}
		}
		looked = b.empty.Swap(false) || looked
		if b.found.Swap(false) {
			foundAt, looked = time.Now(), false
		}
		if nothing := time.Since(foundAt); nothing < tired || !looked && nothing < overdue {
			continue
		}
		if asleep, err = line.Shut(ctx); asleep || err != nil {
			return asleep, err
		}
	}
}
