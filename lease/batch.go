package lease

import (
	"errors"
	"time"

	"github.com/exactly-one/tenure"
)

// batcher divides the requests of one TryAcquire into parts, because the next heartbeat
// must not wait long. Each part is committed; if time is short, the remaining requests
// wait for the next call. After a slow part the next one is smaller.
type batcher struct {
	size int
	now  func() time.Duration
}

// The sizes of parts, in roles.
const (
	firstBatch   = 50
	largestBatch = 1000
)

// run calls do for parts of the requests until a quarter of the limit has passed. It
// returns an error if the session is lost or if the first part fails. If a later part
// fails, only its own requests fail.
func (b *batcher) run(
	requests []tenure.AcquireRequest, limit time.Duration, do func([]tenure.AcquireRequest) ([]tenure.AcquireResult, error),
) ([]tenure.AcquireResult, error) {
	results := make([]tenure.AcquireResult, 0, len(requests))
	begun := b.now()
	for len(results) < len(requests) && (len(results) == 0 || b.now()-begun < limit/4) {
		rest := requests[len(results):]
		part := rest[:min(b.size, len(rest))]
		from := b.now()
		found, err := do(part)
		b.adapt(len(part), b.now()-from, limit, err)
		if err != nil && (len(results) == 0 || errors.Is(err, tenure.ErrSessionLost)) {
			return nil, err
		}
		if err != nil {
			for range part {
				results = append(results, failedResult(err))
			}
			break
		}
		results = append(results, found...)
	}
	for len(results) < len(requests) {
		results = append(results, tenure.AcquireResult{Outcome: tenure.OutcomePending, RetryIn: time.Millisecond})
	}
	return results, nil
}

// adapt chooses the size of the next part after a part of n roles.
func (b *batcher) adapt(n int, took, limit time.Duration, err error) {
	switch {
	case err != nil || took > limit/8:
		b.size = max(min(b.size, n)/2, 1)
	case took < limit/32 && n == b.size:
		b.size = min(2*b.size, largestBatch)
	}
}
