package alerts

import "time"

// burst is how many messages may follow each other without a pause.
const burst = 10

// limiter says when the next message may be sent.
type limiter struct {
	every time.Duration // between two messages in the long run
	free  time.Time     // when all tokens are back
}

func newLimiter(perMinute int) *limiter {
	return &limiter{every: time.Minute / time.Duration(perMinute)}
}

// take returns how long to wait before the next message, and counts it as sent.
func (l *limiter) take(now time.Time) time.Duration {
	if l.free.Before(now) {
		l.free = now
	}
	wait := l.free.Sub(now) - (burst-1)*l.every
	l.free = l.free.Add(l.every)
	return max(wait, 0)
}
