//go:build linux

package guardian

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// scripted is a supervisor whose guardian is the test: it reads the orders, and a
// process that does nothing represents it.
type scripted struct {
	t      *testing.T
	term   *fakeTerm
	s      *supervisor
	far    *net.UnixConn
	orders *json.Decoder
	ended  chan struct{}
}

func beginScripted(t *testing.T, signals <-chan os.Signal) *scripted {
	t.Helper()
	near, file, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	far, err := connection(file)
	if err != nil {
		t.Fatal(err)
	}
	alarm, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	c := &scripted{t: t, term: newTerm(t, time.Hour), far: far, orders: json.NewDecoder(far), ended: make(chan struct{})}
	c.s = &supervisor{
		term: c.term, process: exec.Command("/bin/sleep", "3600"), control: near, alarm: alarm,
		reports: make(chan report), exited: make(chan struct{}),
		command: Command{
			Grace: 50 * time.Millisecond, Lead: time.Second, Refresh: 10 * time.Millisecond, Signals: signals,
			StopSignal:  func() syscall.Signal { return syscall.SIGQUIT },
			StopTimeout: func() time.Duration { return 50 * time.Millisecond },
		},
	}
	c.s.trust = c.s.deadline()
	if err := c.s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		c.s.supervise()
	}()
	t.Cleanup(func() {
		_ = c.s.process.Process.Kill() // it may have ended
		_ = far.Close()
		<-c.ended
		alarm.stop()
	})
	return c
}

// next waits for the next order. The test fails with a text if none comes.
func (c *scripted) next(missing string) (o order) {
	c.t.Helper()
	if err := errors.Join(c.far.SetReadDeadline(time.Now().Add(patience)), c.orders.Decode(&o)); err != nil {
		c.t.Fatalf("%s: %v", missing, err)
	}
	return o
}

// killed waits until the supervisor has killed the process that represents the
// guardian, which does not follow its orders.
func (c *scripted) killed() {
	c.t.Helper()
	select {
	case <-c.s.exited:
	case <-time.After(patience):
		c.t.Error("invariant 4: a guardian that does not follow its orders is not killed")
	}
}

// The orders of the supervisor, and that it kills a guardian that does not act
// on one in time.
func TestSupervisorSendsOrders(t *testing.T) {
	t.Parallel()
	t.Run("lost", func(t *testing.T) {
		c := beginScripted(t, nil)
		c.term.lose()
		if o := c.next("invariant 4: no order to kill"); !o.Kill {
			t.Errorf("invariant 4: the order is not to kill, but %+v", o)
		}
		c.killed()
	})
	t.Run("given up", func(t *testing.T) {
		c := beginScripted(t, nil)
		close(c.term.stopping)
		if o := c.next("no order to stop the command"); o.Stop != syscall.SIGQUIT {
			t.Errorf("the order is not to stop with the signal that was chosen, but %+v", o)
		}
		c.killed()
	})
	t.Run("not renewed", func(t *testing.T) {
		c := beginScripted(t, nil)
		c.term.renew(2 * time.Second)
		if o := c.next("invariant 4: no order with the end of trust"); o.Deadline == 0 || o.Deadline > now().add(2*time.Second) {
			t.Errorf("invariant 4: the order is not the end of trust, but %+v", o)
		}
		c.killed()
		if c.term.Remaining() == 0 {
			t.Error("invariant 4: the guardian outlived the trust")
		}
	})
	t.Run("signal", func(t *testing.T) {
		signals := make(chan os.Signal)
		c := beginScripted(t, signals)
		signals <- syscall.SIGUSR1
		if o := c.next("no order to hand on the signal"); o.Signal != syscall.SIGUSR1 {
			t.Errorf("the order is not to hand on the signal, but %+v", o)
		}
	})
	t.Run("the connection is broken", func(t *testing.T) {
		c := beginScripted(t, nil)
		if err := c.far.CloseRead(); err != nil {
			t.Fatal(err)
		}
		c.term.renew(time.Minute)
		c.killed()
	})
}

// A guardian that does not act on an order is killed 20 ms after the order to kill, or
// 250 ms after the grace period of the order to stop. A busy machine delays some of the
// kills, and a longer wait delays all of them.
func TestGuardianThatDoesNotActIsKilledInTime(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(c *scripted)
		want time.Duration
	}{
		"lost":     {func(c *scripted) { c.term.lose() }, 20 * time.Millisecond},
		"given up": {func(c *scripted) { close(c.term.stopping) }, 50*time.Millisecond + 250*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			least, most := patience, time.Duration(0)
			for range 5 {
				c := beginScripted(t, nil)
				began := now()
				test.end(c)
				c.next("no order")
				c.killed()
				took := now().sub(began)
				least, most = min(least, took), max(most, took)
			}
			if least < test.want || least >= 2*test.want {
				t.Errorf("invariant 4: the supervisor kills a guardian that does not act after %v at least, want %v", least, test.want)
			}
			if most > test.want+time.Second {
				t.Errorf("invariant 4: the supervisor killed a guardian after %v, want %v (bound %v)", most, test.want, test.want+time.Second)
			}
		})
	}
}
