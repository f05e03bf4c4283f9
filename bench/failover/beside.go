package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgserver"
)

// system is another system that is measured in the same rounds: three candidates of one
// command. README.md has the protocol.
type system struct {
	command     string
	environment []string
	patience    time.Duration // bounds every wait for it

	alive, all []*candidate
	took       []time.Duration
	failed     error // why there are no more rounds
}

// besideError is a command of -beside that does not keep the protocol.
type besideError struct {
	command string
	err     error
}

func (e *besideError) Error() string { return fmt.Sprintf("-beside %q: %v", e.command, e.err) }
func (e *besideError) Unwrap() error { return e.err }

// errNotReplaced ends the rounds of a system, but not the run.
var errNotReplaced = errors.New("no other candidate led after the fault")

type systems []*system

// besideDatabase is the database of a system, whose locks are then not those of others.
func besideDatabase(i int) string { return fmt.Sprintf("beside_%d", i+1) }

// systems returns the systems of a scenario; none if they do not have its fault.
func (b *bench) systems(s scenario) systems {
	if s.beside == nil {
		return nil
	}
	var all systems
	for i, command := range b.commands {
		all = append(all, &system{
			command: command, patience: patience,
			environment: []string{"DATABASE_URL=" + b.server.DSNFor(pgserver.Superuser, besideDatabase(i)), "FAILOVER_LEASE=" + b.lease.String()},
		})
	}
	return all
}

func (all systems) gather(ctx context.Context) error {
	for _, s := range all {
		if s.failed != nil {
			continue
		}
		if err := s.gather(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fault makes the fault of a scenario in each system. One whose leader is not replaced is left out
// afterwards.
func (all systems) fault(ctx context.Context, in scenario) error {
	for _, s := range all {
		if s.failed != nil {
			continue
		}
		took, err := in.beside(ctx, s)
		switch {
		case errors.Is(err, errNotReplaced):
			s.failed = fmt.Errorf("round %d: %w", len(s.took)+1, err)
			s.end()
		case err != nil:
			return err
		default:
			s.took = append(s.took, took)
		}
	}
	return nil
}

func (all systems) end() {
	for _, s := range all {
		s.end()
	}
}

func (all systems) results() []besideResult {
	found := make([]besideResult, len(all))
	for i, s := range all {
		found[i] = besideResult{s.command, slices.Clone(s.took), s.overlap(), s.failed}
	}
	return found
}

// gather starts candidates until there are enough and one leads.
func (s *system) gather(ctx context.Context) error {
	for len(s.alive) < nodes {
		member := fmt.Sprintf("FAILOVER_MEMBER=%d", len(s.all)+1)
		c, err := startCandidate(s.command, append(slices.Clone(s.environment), member)...)
		if err != nil {
			return &besideError{s.command, err}
		}
		s.alive, s.all = append(s.alive, c), append(s.all, c)
	}
	silent := errors.New("a candidate printed no line")
	err := s.await(ctx, silent, func() bool {
		return !slices.ContainsFunc(s.alive, func(c *candidate) bool { return !c.hasPrinted() })
	})
	if err == nil {
		err = s.await(ctx, errors.New("no candidate led"), func() bool { return s.leader(nil) != nil })
	}
	return s.blame(ctx, err)
}

// blame attributes a failure to the command, unless the run was interrupted.
func (s *system) blame(ctx context.Context, err error) error {
	var known *besideError
	if err == nil || ctx.Err() != nil || errors.As(err, &known) {
		return err
	}
	return &besideError{s.command, err}
}

// await waits until a condition holds; missing is the error if it does not in time.
func (s *system) await(ctx context.Context, missing error, check func() bool) error {
	var broken error
	err := children.Until(ctx, s.patience, time.Millisecond, func() error {
		for _, c := range s.alive {
			if broken = c.failure(); broken != nil {
				return nil
			}
		}
		if check() {
			return nil
		}
		return missing
	})
	if broken != nil {
		return &besideError{s.command, broken}
	}
	return err
}

// leader returns a candidate that leads and is not the given one, or nil.
func (s *system) leader(except *candidate) *candidate {
	for _, c := range s.alive {
		if _, leads := c.leads(); leads && c != except {
			return c
		}
	}
	return nil
}

// awaitSuccessor waits until another candidate leads, and returns the time from the fault to
// its begin.
func (s *system) awaitSuccessor(ctx context.Context, victim *candidate, fault time.Duration) (time.Duration, error) {
	err := s.await(ctx, errNotReplaced, func() bool { return s.leader(victim) != nil })
	if err != nil {
		return 0, err
	}
	next := s.leader(victim)
	if next == nil {
		return 0, fmt.Errorf("%w for longer than a moment", errNotReplaced)
	}
	since, _ := next.leads()
	return max(0, since-fault), nil
}

func (s *system) remove(victim *candidate) {
	victim.kill()
	s.alive = slices.DeleteFunc(s.alive, func(c *candidate) bool { return c == victim })
}

// end kills all candidates.
func (s *system) end() {
	for len(s.alive) > 0 {
		s.remove(s.alive[0])
	}
}

func (s *system) overlap() time.Duration {
	all := make([][]span, len(s.all))
	for i, c := range s.all {
		all[i] = c.spans()
	}
	return longestOverlap(all)
}

// victim returns the candidate that leads.
func (s *system) victim() (*candidate, error) {
	if c := s.leader(nil); c != nil {
		return c, nil
	}
	return nil, &besideError{s.command, errors.New("no candidate leads")}
}

func killOther(ctx context.Context, s *system) (time.Duration, error) {
	victim, err := s.victim()
	if err != nil {
		return 0, err
	}
	fault := monotonic()
	s.remove(victim)
	return s.awaitSuccessor(ctx, victim, fault)
}

// endOther ends the leader with SIGTERM.
func endOther(ctx context.Context, s *system) (time.Duration, error) {
	victim, err := s.victim()
	if err != nil {
		return 0, err
	}
	fault := monotonic()
	victim.leave()
	victim.signal(syscall.SIGTERM)
	took, err := s.awaitSuccessor(ctx, victim, fault)
	if err != nil {
		return took, err
	}
	err = s.await(ctx, errors.New("a candidate did not end after SIGTERM"), func() bool {
		select {
		case <-victim.ended:
			return true
		default:
			return false
		}
	})
	s.remove(victim)
	return took, s.blame(ctx, err)
}

// pauseOther stops the leader until another candidate leads.
func pauseOther(ctx context.Context, s *system) (time.Duration, error) {
	victim, err := s.victim()
	if err != nil {
		return 0, err
	}
	fault := monotonic()
	victim.pause()
	took, err := s.awaitSuccessor(ctx, victim, fault)
	victim.resume()
	if err != nil {
		return took, err
	}
	err = s.await(ctx, errors.New("a candidate printed no line after it was continued"), victim.hasPrinted)
	return took, s.blame(ctx, err)
}
