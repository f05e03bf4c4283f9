//go:build unix

package guardian

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// What the guardian may take longer than it should before the supervisor does
// its work.
const (
	killSlack = 20 * time.Millisecond
	stopSlack = 250 * time.Millisecond
)

// orphanWarning is how long killed processes may take to end without a word.
const orphanWarning = time.Second

// supervisor is one run of a command as the leading process sees it.
type supervisor struct {
	seat    Term
	command Command

	process *exec.Cmd // the guardian
	control *net.UnixConn
	alarm   *alarm
	foreign []int         // children that this process had before
	reports chan report   // closed when the guardian says no more
	exited  chan struct{} // closed when the guardian has ended

	killed bool   // the guardian was
	trust  moment // as the guardian was told
	limit  moment // when all must be over for another reason; 0 if there is none
	gone   *end   // as the guardian says
	failed string // why the guardian did not start the command
}

// Run runs a command under a guardian and returns when neither the command nor
// any descendant of it lives. It ends them politely when the seat is stopping,
// and at once when the seat's context ends. If nothing was started, the error
// matches [ErrNotStarted]; there is no other. Several commands may run at once.
func Run(seat Term, command Command) (End, error) {
	s := &supervisor{seat: seat, command: command, reports: make(chan report), exited: make(chan struct{})}
	if err := s.start(); err != nil {
		return End{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	defer s.alarm.stop()
	s.supervise()
	switch {
	case s.failed != "":
		return End{}, fmt.Errorf("%w: %s", ErrNotStarted, s.failed)
	case s.gone != nil:
		return End{Code: s.gone.Code, Stopped: s.gone.Stopped}, nil
	}
	s.killOrphans()
	return End{Code: 128 + int(syscall.SIGKILL), Stopped: true}, nil
}

// start starts the guardian and tells it to begin.
func (s *supervisor) start() error {
	anchor, err := s.seat.LockConn()
	if err != nil {
		return err
	}
	program, err := executable()
	if err != nil {
		return err
	}
	if err := adopt(); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	control, far, err := socketPair()
	if err != nil {
		return err
	}
	s.control = control
	s.process = &exec.Cmd{
		Path: program, Args: append([]string{os.Args[0], CommandName, s.command.Path}, s.command.Args...), Env: s.command.Env,
		Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{far},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // a terminal's signals reach the supervisor alone
	}
	if s.command.Stdin != nil {
		s.process.Stdin = s.command.Stdin
	}
	if s.command.Stderr != nil {
		s.process.Stderr = s.command.Stderr
	}
	s.foreign, err = living.add(func() (int, error) {
		if err := s.process.Start(); err != nil {
			return 0, err
		}
		return s.process.Process.Pid, nil
	})
	_ = far.Close()
	if err != nil {
		_ = control.Close()
		return err
	}
	if s.alarm, err = newAlarm(); err == nil {
		s.trust = s.deadline()
		limits := limits{Grace: s.command.Grace, Lead: s.command.Lead, Deadline: s.trust}
		if err = sendWithAnchor(control, order{Begin: &limits}, anchor); err != nil {
			s.alarm.stop()
		}
	}
	if err != nil {
		s.killGuardian()
		_ = s.process.Wait() // it was killed
		living.remove(s.process.Process.Pid)
		_ = control.Close()
		return fmt.Errorf("telling the guardian to begin: %w", err)
	}
	return nil
}

// supervise serves until the guardian has ended.
func (s *supervisor) supervise() {
	go receive(json.NewDecoder(s.control), s.reports)
	go func() {
		defer close(s.exited)
		_ = s.process.Wait() // its reports say how the command ended
	}()
	watch := time.NewTicker(max(time.Millisecond, s.command.Refresh/4))
	defer watch.Stop()
	stopping, over := s.seat.Stopping(), s.seat.Context().Done()
	for s.reports != nil {
		s.rearm()
		select {
		case r, ok := <-s.reports:
			if !ok { // it has ended, or is about to
				s.reports = nil
				break
			}
			s.note(r)
		case <-watch.C:
			s.followTrust()
		case signal := <-s.command.Signals:
			if number, ok := signal.(syscall.Signal); ok {
				s.tell(order{Signal: number})
			}
		case <-stopping:
			stopping = nil
			s.tell(order{Stop: s.command.StopSignal()})
			s.hurry(s.command.Grace + stopSlack)
		case <-over:
			over = nil
			s.tell(order{Kill: true})
			s.hurry(killSlack)
		case <-s.alarm.rings:
			if now() >= s.killAt() {
				s.killGuardian()
			}
		}
	}
	_ = s.control.Close()
	<-s.exited
	living.remove(s.process.Process.Pid)
}

func (s *supervisor) note(r report) {
	switch {
	case r.PID != 0:
		s.command.Started(r.PID)
	case r.Failed != "":
		s.failed = r.Failed
	case r.Gone != nil:
		s.gone = r.Gone
	}
}

// deadline is the moment when trust ends. The clock is read first, so that a
// pause between the two readings makes it earlier, not later.
func (s *supervisor) deadline() moment {
	at := now()
	return at.add(s.seat.Remaining())
}

// followTrust tells the guardian when the end of trust has moved. Both clocks
// that trust is measured on may drift a little.
func (s *supervisor) followTrust() {
	trust := s.deadline()
	if drift := trust.sub(s.trust).Abs(); drift < s.command.Lead/10 {
		return
	}
	s.trust = trust
	s.tell(order{Deadline: trust})
}

// tell gives an order. A guardian that does not take it is killed, and so is
// what it guards.
func (s *supervisor) tell(o order) {
	if send(s.control, o) != nil {
		s.killGuardian()
	}
}

// hurry sets a limit for the guardian.
func (s *supervisor) hurry(within time.Duration) {
	limit := now().add(within)
	if s.limit == 0 || limit < s.limit {
		s.limit = limit
	}
}

// killAt is when the guardian should have killed everything long ago.
func (s *supervisor) killAt() moment {
	at := s.trust.add(-s.command.Lead / 2)
	if s.limit != 0 {
		at = min(at, s.limit)
	}
	return at
}

func (s *supervisor) rearm() {
	if s.killed {
		return
	}
	if s.alarm.set(s.killAt()) != nil {
		s.killGuardian() // without deadlines nothing may run
	}
}

// killGuardian kills the guardian, and with it the command; the rest of its
// descendants come to this process.
func (s *supervisor) killGuardian() {
	s.killed = true
	_ = s.process.Process.Kill() // it may have ended
}

// killOrphans kills what a killed guardian has left, until none of it lives.
func (s *supervisor) killOrphans() {
	start := now()
	for pause, warned := firstKillPause, false; !living.killOrphans(s.foreign); pause = min(2*pause, lastKillPause) {
		if !warned && now().sub(start) > orphanWarning {
			warned = true
			s.command.Logger.Error("processes of the command cannot be killed; the role is not released before they have ended",
				"processes", living.orphans(s.foreign))
		}
		time.Sleep(pause)
	}
}
