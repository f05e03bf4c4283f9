package children

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/testkit"
)

// writers is how many goroutines of a leader write at the same time.
const writers = 4

// Term is a term of a leader.
type Term interface {
	Number() int64
	Valid() bool
}

// Write is the work of a leader under load: until ctx ends, it writes names in several
// goroutines, each name once, and reports each write before and after it.
func Write(ctx context.Context, term Term, write func(ctx context.Context, name string) error) {
	var load sync.WaitGroup
	for first := range int64(writers) {
		load.Go(func() { // exits when ctx ends; Write waits
			for number := first; ctx.Err() == nil; number += writers {
				report := Report{Kind: "begun", Term: term.Number(), Sequence: number}
				Send(report)
				err := write(ctx, nameOf(report))
				report.Kind, report.Lead = "wrote", term.Valid()
				if err != nil {
					report.Error = err.Error()
				}
				Send(report)
			}
		})
	}
	load.Wait()
}

// Hold is the work of a leader that is about to become stale. It reports "held", waits for
// release, writes, and reports how that ended as "tried".
func Hold(term Term, release <-chan struct{}, write func(wait func() error) error) {
	err := write(func() error {
		Send(Report{Kind: "held", Term: term.Number()})
		<-release
		return nil
	})
	Send(Report{Kind: "tried", Term: term.Number(), Lead: term.Valid(), Error: fmt.Sprint(err)})
}

// CheckStale pauses a child that is in [Hold] until another one has written, and resumes
// it with a line on its standard input, upon which it releases Hold. It returns an error
// unless the write is refused by the fence, in a term that the child knows to be over.
func (w *Writes) CheckStale(ctx context.Context, stale *Child) error {
	if err := stale.Stop(); err != nil {
		return err
	}
	if _, err := w.Await(ctx, stale, 1); err != nil {
		return err
	}
	if err := stale.Say("write"); err != nil {
		return err
	}
	if err := stale.Signal(sandbox.ResumeSignal); err != nil {
		return err
	}
	tried, err := stale.Await(ctx, "tried", time.Time{})
	if err == nil && (tried.Lead || !strings.Contains(tried.Error, "fenced")) {
		err = fmt.Errorf("the write of the stale leader: %s, term valid %v; want it to be fenced", tried.Error, tried.Lead)
	}
	return err
}

// nameOf returns the name that a report is about.
func nameOf(r Report) string { return fmt.Sprintf("%d/%d", r.Term, r.Sequence) }

// Writes is what several children reported in [Write]. The zero value has no reports.
type Writes struct {
	// Guarded by mu.
	mu        sync.Mutex
	begun     map[string]bool
	answered  int
	succeeded []write
	leaders   map[int64]*Child // by term
	faults    []error
}

// write is a write that a child reported as successful.
type write struct {
	name string
	by   *Child
}

// note reports whether r is a report of Write, and keeps it if it is.
func (w *Writes) note(from *Child, r Report) bool {
	if w == nil || r.Kind != "begun" && r.Kind != "wrote" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := nameOf(r)
	if r.Kind == "begun" {
		if w.begun == nil {
			w.begun, w.leaders = map[string]bool{}, map[int64]*Child{}
		}
		w.begun[name] = true
		if leader := w.leaders[r.Term]; leader != nil && leader != from {
			w.faults = append(w.faults, fmt.Errorf("%s and %s both wrote in term %d", leader.Name, from.Name, r.Term))
		}
		w.leaders[r.Term] = from
		return true
	}
	w.answered++
	switch {
	case r.Error == "":
		w.succeeded = append(w.succeeded, write{name, from})
	case r.Lead: // an error, although the term is valid
		w.faults = append(w.faults, fmt.Errorf("%s by %s: %s", name, from.Name, r.Error))
	}
	return true
}

// Await waits until a child other than one, which may be nil, has written successfully
// some times from now on, and returns the child that wrote last.
func (w *Writes) Await(ctx context.Context, other *Child, times int) (leader *Child, err error) {
	w.mu.Lock()
	from := len(w.succeeded)
	w.mu.Unlock()
	err = testkit.Until(ctx, patience, 5*time.Millisecond, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		count := 0
		for _, one := range w.succeeded[from:] {
			if one.by != other {
				leader = one.by
				count++
			}
		}
		if count < times {
			return fmt.Errorf("%d writes, want %d", count, times)
		}
		return nil
	})
	return leader, err
}

// Check compares names, all that have been written in their order, with the reports,
// after some leaders were killed. It finds a name that was written twice, without a
// report, or after one of a later term, a write that succeeded and is lost, and more
// writes without an answer than were in flight.
func (w *Writes) Check(names []string, kills int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	faults := w.faults
	written := map[string]bool{}
	var last int64
	for _, name := range names {
		var term int64
		if _, err := fmt.Sscanf(name, "%d/", &term); err != nil {
			return fmt.Errorf("the name %q has no term: %w", name, err)
		}
		switch {
		case written[name]:
			faults = append(faults, fmt.Errorf("%s was written twice", name))
		case !w.begun[name]:
			faults = append(faults, fmt.Errorf("%s was written, and no child began to", name))
		case term < last:
			faults = append(faults, fmt.Errorf("%s was written after a name of term %d", name, last))
		}
		written[name] = true
		last = max(last, term)
	}
	for _, one := range w.succeeded {
		if !written[one.name] {
			faults = append(faults, fmt.Errorf("%s was reported as written, and is lost", one.name))
		}
	}
	if lost := len(w.begun) - w.answered; lost > kills*writers {
		faults = append(faults, fmt.Errorf("%d writes have no answer, want at most %d for each of %d kills", lost, writers, kills))
	}
	return errors.Join(faults...)
}
