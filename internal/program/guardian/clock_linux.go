package guardian

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// moment is a reading in nanoseconds of a clock common to all processes of a machine. It
// continues while they are stopped or the machine is suspended.
type moment int64

// now reads the clock.
func now() moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("guardian: CLOCK_BOOTTIME: %v", err)) // every kernel since 2.6.39 has it
	}
	return moment(t.Nano())
}

func (m moment) add(d time.Duration) moment { return m + moment(d) }
func (m moment) sub(o moment) time.Duration { return time.Duration(m - o) }

// alarm fires when the clock reaches a moment, even if this process is stopped at the
// time.
type alarm struct {
	rings chan struct{}
	timer *os.File
	done  chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	a := &alarm{rings: make(chan struct{}, 1), timer: os.NewFile(uintptr(fd), "timer"), done: make(chan struct{})}
	go a.listen() // exits when the timer is closed; a.done shows it
	return a, nil
}

// listen reads the timer. It may fire for an outdated moment, so the receiver checks the
// clock.
func (a *alarm) listen() {
	defer close(a.done)
	for expirations := make([]byte, 8); ; {
		if _, err := a.timer.Read(expirations); err != nil {
			return
		}
		select {
		case a.rings <- struct{}{}:
		default:
		}
	}
}

// set changes the moment of the alarm. If it has passed, the alarm fires
// immediately.
func (a *alarm) set(at moment) error {
	raw, err := a.timer.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, int64(at)))}
	var failure error
	err = raw.Control(func(fd uintptr) { failure = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	if err == nil {
		err = failure
	}
	return err
}

// stop ends the alarm.
func (a *alarm) stop() {
	_ = a.timer.Close() // makes the read return
	<-a.done
}
