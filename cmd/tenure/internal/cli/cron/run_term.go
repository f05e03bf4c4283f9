package cron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// runTerm is a term as seen by one run of a schedule. It also stops when the
// run's timeout has passed. When the term is stopping, it stops only after the
// time for work in flight.
type runTerm struct {
	*tenure.Term

	run      context.Context // ends with the run's timeout, or the term
	stopping chan struct{}
	left     chan struct{}
	watching sync.WaitGroup
}

// newRunTerm starts to watch the term. last is the time from the stop of the
// term to the stop of the run. The caller must call leave.
func newRunTerm(run context.Context, term *tenure.Term, last time.Duration) *runTerm {
	s := &runTerm{Term: term, run: run, stopping: make(chan struct{}), left: make(chan struct{})}
	s.watching.Go(func() { s.watch(last) })
	return s
}

func (s *runTerm) watch(last time.Duration) {
	select {
	case <-s.left:
		return
	case <-s.run.Done():
	case <-s.Term.Stopping():
		select {
		case <-s.left:
			return
		case <-s.run.Done():
		case <-time.After(last):
		}
	}
	close(s.stopping)
}

// Stopping is closed when the run should end gracefully.
func (s *runTerm) Stopping() <-chan struct{} { return s.stopping }

// leave releases the resources of newRunTerm.
func (s *runTerm) leave() {
	close(s.left)
	s.watching.Wait()
}

// cutOff returns the error of a run after its command was ended. If the term was the
// reason, it waits until the term has ended: then the run is not recorded as failed, and
// the next leader applies its policy.
func (s *runTerm) cutOff(words string) error {
	<-s.run.Done()
	cause := context.Cause(s.run)
	if errors.Is(cause, context.DeadlineExceeded) {
		return failure("the command was ended because its timeout had passed", words)
	}
	return fmt.Errorf("the command was interrupted: %w", cause)
}
