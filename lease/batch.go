package lease

import (
	"errors"
	"time"

	"github.com/exactly-one/tenure"
)

// batcher divides what one call of TryAcquire asks for, so that the next heartbeat
// does not wait behind it: each part is committed, and what there is no time for
// is left to the next call. A part that takes long makes the next one smaller.
type batcher struct {
	size int
	now  func() time.Duration
}

// The sizes of parts, in roles.
const (
	firstBatch   = 50
	largestBatch = 1000
)

// run calls do for parts of the candidates until a quarter of the limit has
// passed. It returns an error if the session is lost, or if the first part fails;
// a later part fails for its own candidates only.
func (b *batcher) run(
	candidates []tenure.AcquireRequest, limit time.Duration, do func([]tenure.AcquireRequest) ([]tenure.AcquireResult, error),
) ([]tenure.AcquireResult, error) {
	attempts := make([]tenure.AcquireResult, 0, len(candidates))
	begun := b.now()
	for len(attempts) < len(candidates) && (len(attempts) == 0 || b.now()-begun < limit/4) {
		rest := candidates[len(attempts):]
		part := rest[:min(b.size, len(rest))]
		from := b.now()
		found, err := do(part)
		b.adapt(len(part), b.now()-from, limit, err)
		if err != nil && (len(attempts) == 0 || errors.Is(err, tenure.ErrSessionLost)) {
			return nil, err
		}
		if err != nil {
			for range part {
				attempts = append(attempts, failedResult(err))
			}
			break
		}
		attempts = append(attempts, found...)
	}
	for len(attempts) < len(candidates) {
		attempts = append(attempts, tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Millisecond})
	}
	return attempts, nil
}

// adapt chooses the size of the next part after one of n roles.
func (b *batcher) adapt(n int, took, limit time.Duration, err error) {
	switch {
	case err != nil || took > limit/8:
		b.size = max(min(b.size, n)/2, 1)
	case took < limit/32 && n == b.size:
		b.size = min(2*b.size, largestBatch)
	}
}
