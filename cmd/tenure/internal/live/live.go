// Package live reads something again after each possible change, for commands to show it
// until a signal.
package live

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/internal/wakeup"
)

// Source is the source of the readings.
type Source[T any] struct {
	Read func(context.Context) (T, error)
	// Listen calls wake when it has begun to listen and whenever the value may have
	// changed, until ctx ends or it cannot continue. It may be nil.
	Listen func(ctx context.Context, wake func()) error
}

// Reading is the latest value, and why there is no newer one.
type Reading[T any] struct {
	Value T
	At    time.Time // when the read began; zero if none has succeeded
	Err   error     // of the latest read; nil if it succeeded
}

// The times between two reads, and the bound on each.
const (
	pause       = 100 * time.Millisecond // at least: simultaneous changes are read together
	pollPeriod  = time.Second            // without notifications
	quietPeriod = 5 * time.Second        // with notifications: one can be lost
	readTimeout = 5 * time.Second
)

// Follow calls show after each read, and each second while reads fail. It returns nil
// when ctx ends, the error of a failed first read, and an error of show. All its
// goroutines have ended then.
func Follow[T any](ctx context.Context, source Source[T], show func(Reading[T]) error) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower[T]{source: source, readings: make(chan Reading[T]), woken: make(chan struct{}, 1)}
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { f.read(ctx) })
	if source.Listen != nil {
		group.Go(func() { f.listen(ctx) })
	}
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	var last Reading[T]
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if last.Err == nil && time.Since(last.At) < quietPeriod+pollPeriod {
				continue
			}
		case reading := <-f.readings:
			if reading.Err != nil {
				reading.Value, reading.At = last.Value, last.At
			}
			last = reading
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case last.At.IsZero() && last.Err != nil:
			return last.Err
		case last.At.IsZero():
			continue
		}
		if err := show(last); err != nil {
			return err
		}
	}
}

// follower is the common state of the goroutines of Follow.
type follower[T any] struct {
	source    Source[T]
	readings  chan Reading[T]
	woken     chan struct{}
	listening atomic.Bool
}

// read reads until ctx ends.
func (f *follower[T]) read(ctx context.Context) {
	for ctx.Err() == nil {
		at := time.Now()
		bounded, cancel := context.WithTimeout(ctx, readTimeout)
		value, err := f.source.Read(bounded)
		cancel()
		select {
		case f.readings <- Reading[T]{Value: value, At: at, Err: err}:
		case <-ctx.Done():
			return
		}
		wakeup.Sleep(ctx, pause)
		period := pollPeriod
		if err == nil && f.listening.Load() {
			period = quietPeriod
		}
		wakeup.Await(ctx, period-time.Since(at), f.woken)
	}
}

// listen forwards notifications until ctx ends, and begins again when listening fails.
func (f *follower[T]) listen(ctx context.Context) {
	for {
		_ = f.source.Listen(ctx, func() { // reads report a database that does not answer
			f.listening.Store(true)
			wakeup.Send(f.woken)
		})
		f.listening.Store(false)
		if !wakeup.Sleep(ctx, pollPeriod) {
			return
		}
	}
}
