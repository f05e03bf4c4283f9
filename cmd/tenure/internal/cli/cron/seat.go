package cron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/exactly-one/tenure"
)

// runTerm is a term as one run of a schedule sits in it: it is given up when the
// run's time is over, too, and when the term was asked to end, only after the time
// in which work in flight may end by itself.
type runTerm struct {
	*tenure.Term

	run      context.Context // ends with the run's timeout, or the term
	stopping chan struct{}
	left     chan struct{}
	watching sync.WaitGroup
}

// newRunTerm begins to watch; last is how long after the term was asked to end the
// run is. The caller leaves the seat.
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
		timer := time.NewTimer(last)
		defer timer.Stop()
		select {
		case <-s.left:
			return
		case <-s.run.Done():
		case <-timer.C:
		}
	}
	close(s.stopping)
}

// Stopping is closed when the run is to end politely.
func (s *runTerm) Stopping() <-chan struct{} { return s.stopping }

// leave ends what takeSeat began.
func (s *runTerm) leave() {
	close(s.left)
	s.watching.Wait()
}

// cutOff is what a run returns whose command was ended. If that was for the term's
// sake, it waits until the term is over: then nobody records the run as failed, and
// the next leader does with it what its policy says.
func (s *runTerm) cutOff(words string) error {
	<-s.run.Done()
	cause := context.Cause(s.run)
	if errors.Is(cause, context.DeadlineExceeded) {
		return failure("the command was ended when its timeout was over", words)
	}
	return fmt.Errorf("the command was cut off: %w", cause)
}
