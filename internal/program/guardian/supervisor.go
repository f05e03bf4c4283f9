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

// How late the guardian may be before the supervisor acts in its place.
const (
	killSlack = 20 * time.Millisecond
	stopSlack = 250 * time.Millisecond
)

// orphanWarning is how long killed processes may take to end before a warning
// is logged.
const orphanWarning = time.Second

// supervisor is one run of a command in the leading process.
type supervisor struct {
	term    Term
	command Command

	process *exec.Cmd // the guardian
	control *net.UnixConn
	alarm   *alarm
	foreign []int         // earlier children of this process
	reports chan report   // closed after the guardian's last report
	exited  chan struct{} // closed when the guardian has exited

	killed bool   // the guardian was killed by this process
	begun  bool   // the guardian may have started the command
	trust  moment // as last sent to the guardian
	limit  moment // another limit for the end of all processes; 0 if there is none
	gone   *end   // as reported by the guardian
	failed string // why the guardian did not start the command
}

// Run runs a command under a guardian and returns when neither the command nor any of its
// descendants is running. It ends them gracefully when the term is stopping, and kills
// them when the term's context ends. An error means: nothing was started. It matches
// [ErrNotStarted]. Several commands may run at the same time.
func Run(term Term, command Command) (End, error) {
	s := &supervisor{term: term, command: command, reports: make(chan report), exited: make(chan struct{})}
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
	if !s.begun && !s.killed {
		return End{}, fmt.Errorf("%w: the guardian ended before it started the command: %s", ErrNotStarted, s.process.ProcessState)
	}
	return End{Code: 128 + int(syscall.SIGKILL), Stopped: true, GuardianLost: !s.killed}, nil
}

// start starts the guardian and orders it to begin.
func (s *supervisor) start() error {
	anchor, err := s.term.LockConn()
	if err != nil {
		return err
	}
	program, err := executable()
	if err != nil {
		return err
	}
	if err := becomeSubreaper(); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	control, far, err := socketPair()
	if err != nil {
		return err
	}
	s.control = control
	s.process = &exec.Cmd{
		Path: program, Args: append([]string{os.Args[0], CommandName, s.command.Path}, s.command.Args...), Env: s.command.Env,
		Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{far},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true}, // signals of a terminal reach only the supervisor
	}
	if s.command.Stdin != nil {
		s.process.Stdin = s.command.Stdin
	}
	if s.command.Stdout != nil {
		s.process.Stdout = s.command.Stdout
	}
	if s.command.Stderr != nil {
		s.process.Stderr = s.command.Stderr
	}
	s.foreign, err = liveGuardians.add(func() (int, error) {
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
		liveGuardians.remove(s.process.Process.Pid)
		_ = control.Close()
		return fmt.Errorf("send the order to begin: %w", err)
	}
	return nil
}

// supervise runs until the guardian has exited.
func (s *supervisor) supervise() {
	go receive(json.NewDecoder(s.control), s.reports) // exits with the guardian; the loop below reads until it has
	go func() {                                       // exits with the guardian; s.exited shows it
		defer close(s.exited)
		_ = s.process.Wait() // its reports say how the command ended
	}()
	watch := time.NewTicker(max(time.Millisecond, s.command.Refresh/4))
	defer watch.Stop()
	stopping, over := s.term.Stopping(), s.term.Context().Done()
	for s.reports != nil {
		s.rearm()
		select {
		case r, ok := <-s.reports:
			if !ok { // it has exited or is about to
				s.reports = nil
				break
			}
			s.handleReport(r)
		case <-watch.C:
			s.followTrust()
		case signal := <-s.command.Signals:
			if number, ok := signal.(syscall.Signal); ok {
				s.sendOrder(order{Signal: number})
			}
		case <-stopping:
			stopping = nil
			within := s.command.StopTimeout()
			s.sendOrder(order{Stop: s.command.StopSignal(), Within: within})
			s.limitTo(within + stopSlack)
		case <-over:
			over = nil
			s.sendOrder(order{Kill: true})
			s.limitTo(killSlack)
		case <-s.alarm.rings:
			if now() >= s.killAt() {
				s.killGuardian()
			}
		}
	}
	_ = s.control.Close()
	<-s.exited
	liveGuardians.remove(s.process.Process.Pid)
}

func (s *supervisor) handleReport(r report) {
	switch {
	case r.Begins:
		s.begun = true
	case r.PID != 0:
		s.command.Started(r.PID)
	case r.Failed != "":
		s.failed = r.Failed
	case r.Gone != nil:
		s.gone = r.Gone
	}
}

// deadline returns the moment when trust ends. It reads the clock first: a pause between
// the two readings makes the deadline earlier, not later.
func (s *supervisor) deadline() moment {
	at := now()
	return at.add(s.term.Remaining())
}

// followTrust informs the guardian when the end of trust has changed. The two clocks of
// trust may drift slightly.
func (s *supervisor) followTrust() {
	trust := s.deadline()
	if drift := trust.sub(s.trust).Abs(); drift < s.command.Lead/10 {
		return
	}
	s.trust = trust
	s.sendOrder(order{Deadline: trust})
}

// sendOrder sends an order. If the guardian does not take it, the guardian and
// its processes are killed.
func (s *supervisor) sendOrder(o order) {
	if send(s.control, o) != nil {
		s.killGuardian()
	}
}

// limitTo sets a time limit for the guardian.
func (s *supervisor) limitTo(within time.Duration) {
	limit := now().add(within)
	if s.limit == 0 || limit < s.limit {
		s.limit = limit
	}
}

// killAt returns when the guardian should long have killed everything.
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
		s.killGuardian() // nothing may run without deadlines
	}
}

// killGuardian kills the guardian and with it the command. Their remaining
// descendants become children of this process.
func (s *supervisor) killGuardian() {
	s.killed = true
	_ = s.process.Process.Kill() // it may have exited
}

// killOrphans kills the descendants of a killed guardian until none is running.
func (s *supervisor) killOrphans() {
	start := now()
	for pause, warned := firstKillPause, false; !liveGuardians.killOrphans(s.foreign); pause = min(2*pause, lastKillPause) {
		if !warned && now().sub(start) > orphanWarning {
			warned = true
			left, err := liveGuardians.orphans(s.foreign)
			log := s.command.Logger.With("processes", left)
			if err != nil {
				log = log.With("error", err)
			}
			log.Error("processes of the command cannot be killed; the role is released only when they have ended")
		}
		time.Sleep(pause)
	}
}
