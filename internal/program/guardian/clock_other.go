//go:build unix && !linux

package guardian

import "time"

// moment is a reading of the wall clock in nanoseconds since 1970: the clock common to
// all processes of a machine.
type moment int64

// now reads the clock.
func now() moment { return moment(time.Now().UnixNano()) }

func (m moment) add(d time.Duration) moment { return m + moment(d) }
func (m moment) sub(o moment) time.Duration { return time.Duration(m - o) }

// alarm fires when the clock reaches a moment.
type alarm struct {
	rings chan struct{}
	timer *time.Timer
}

func newAlarm() (*alarm, error) {
	a := &alarm{rings: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(time.Hour, a.ring)
	return a, nil
}

func (a *alarm) ring() {
	select {
	case a.rings <- struct{}{}:
	default:
	}
}

// set changes the moment of the alarm. If it has passed, the alarm fires
// immediately.
func (a *alarm) set(at moment) error {
	a.timer.Reset(max(0, at.sub(now())))
	return nil
}

// stop ends the alarm.
func (a *alarm) stop() { a.timer.Stop() }
