package pgdial

import (
	"context"
	"errors"
	"sync"
	"time"
)

// race makes attempts in order and returns the first success. The next attempt begins as
// soon as the earlier ones have failed or have not succeeded within a stagger. race fails
// when all have, with their errors in order. It cancels the late attempts, waits for their
// ends, and discards their results.
func race[T any](ctx context.Context, attempts []func(context.Context) (T, error), discard func(T)) (T, error) {
	if len(attempts) == 1 {
		return attempts[0](ctx)
	}
	type result struct {
		index int
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, len(attempts))
	var group sync.WaitGroup
	started, finished := 0, 0
	defer func() {
		cancel()
		group.Wait()
		close(results)
		for late := range results {
			if late.err == nil {
				discard(late.value)
			}
		}
	}()

	errs := make([]error, len(attempts))
	next := time.NewTimer(0)
	defer next.Stop()
	for finished < len(attempts) {
		select {
		case r := <-results:
			if r.err == nil {
				return r.value, nil
			}
			finished++
			errs[r.index] = r.err
			if started > finished {
				continue
			}
		case <-next.C:
		}
		if started == len(attempts) {
			continue
		}
		index := started
		started++
		group.Go(func() { // ends with its attempt
			value, err := attempts[index](ctx)
			results <- result{index, value, err}
		})
		next.Reset(stagger)
	}
	var none T
	return none, errors.Join(errs...)
}
