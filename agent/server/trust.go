package server

import (
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/agent/internal/wire"
)

// trust is the trust window of the agent's session on the boot clock. Once ended
// it is never revived (Invariant 1).
type trust struct {
	now   func() wire.Moment // the boot clock
	until atomic.Int64       // a wire.Moment; 0 before the first heartbeat
	ended atomic.Bool
}

// extend moves the end, unless trust has ended.
func (t *trust) extend(until wire.Moment) bool {
	if !t.maySend() {
		return false
	}
	t.until.Store(int64(until))
	return t.valid()
}

// valid reports whether trust has begun and not ended.
func (t *trust) valid() bool { return t.until.Load() != 0 && t.maySend() }

// maySend reports whether the session may send a statement: while trust is valid,
// and before it begins, when the session holds no lock.
func (t *trust) maySend() bool {
	until := t.until.Load()
	if until != 0 && int64(t.now()) >= until {
		t.ended.Store(true)
	}
	return !t.ended.Load()
}

// end ends trust.
func (t *trust) end() { t.ended.Store(true) }

// limit returns the end of trust.
func (t *trust) limit() wire.Moment { return wire.Moment(t.until.Load()) }

// remaining returns the time until trust ends.
func (t *trust) remaining() time.Duration { return t.limit().Sub(t.now()) }
