package dashboard

import (
	"context"
	"sync"
	"time"
)

// The bounds on the reads of processors and schedules for their pages.
const (
	sharedAge     = time.Second
	sharedTimeout = 10 * time.Second
	maxShared     = 200 // results in memory
)

// sharedReads shares reads of the database among visitors: a page with many visitors is
// read at most once in the age of results. One read runs at a time: visitors cannot take
// all connections of the pool. It is safe for concurrent use.
type sharedReads struct {
	age, timeout time.Duration // for how long a result is used again, and of a read
	turn         chan struct{}

	mu      sync.Mutex
	results map[string]*sharedResult
}

// sharedResult is the result of a read, or a read in progress.
type sharedResult struct {
	ready chan struct{} // closed when the read has ended
	value any
	err   error
	ended time.Time
}

func newSharedReads(age, timeout time.Duration) *sharedReads {
	return &sharedReads{age: age, timeout: timeout, turn: make(chan struct{}, 1), results: map[string]*sharedResult{}}
}

// get returns the result of a recent read, or reads. The read does not end with ctx:
// other requests wait for it too.
func (s *sharedReads) get(ctx context.Context, key string, read func(context.Context) (any, error)) (any, error) {
	s.mu.Lock()
	result := s.results[key]
	mine := result == nil || s.isOld(result, time.Now())
	if mine {
		s.makeRoomLocked()
		result = &sharedResult{ready: make(chan struct{})}
		s.results[key] = result
	}
	s.mu.Unlock()
	if mine {
		s.read(context.WithoutCancel(ctx), result, read)
	}
	select {
	case <-result.ready:
		return result.value, result.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read fills a result when it is its turn.
func (s *sharedReads) read(ctx context.Context, result *sharedResult, read func(context.Context) (any, error)) {
	defer close(result.ready)
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		result.value, result.err = read(ctx)
	case <-ctx.Done():
		result.err = context.Cause(ctx)
	}
	result.ended = time.Now()
}

// isOld reports whether a result must not be used again.
func (s *sharedReads) isOld(r *sharedResult, now time.Time) bool {
	select {
	case <-r.ready:
		return now.Sub(r.ended) > s.age
	default:
		return false
	}
}

// makeRoomLocked removes old results if there are many.
func (s *sharedReads) makeRoomLocked() {
	if len(s.results) < maxShared {
		return
	}
	now := time.Now()
	for key, result := range s.results {
		if s.isOld(result, now) {
			delete(s.results, key)
		}
	}
}
