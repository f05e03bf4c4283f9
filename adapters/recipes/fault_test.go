//go:build unix

package recipes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

const writerVariable = "TENURE_RECIPE_TEST"

// writers is how many goroutines of a leader write at the same time.
const writers = 4

// writer is a process that writes with a library for as long as it leads. It runs until
// it is killed.
type writer struct {
	DSN     string
	Library string
	Lease   time.Duration
	Hold    bool // the first write of a term waits for a line of the parent process

	write   write
	release chan struct{} // receives a value for each line
}

func runWriter(given string) {
	w := &writer{release: make(chan struct{})}
	err := json.Unmarshal([]byte(given), w)
	if err == nil {
		err = w.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (w *writer) run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	if w.write, err = libraries[w.Library](stdlib.OpenDBFromPool(pool)); err != nil {
		return err
	}
	backend, err := postgres.New(w.DSN, postgres.Config{})
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, backend, tenure.Config{Lease: w.Lease})
	if err != nil {
		return err
	}
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		return err
	}
	go func() { // ends with the process
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			w.release <- struct{}{}
		}
	}()
	return errors.Join(election.Run(ctx, w.lead), errors.New("the election has ended"))
}

// lead writes until the term ends.
func (w *writer) lead(ctx context.Context, term *tenure.Term) error {
	var load sync.WaitGroup
	for first := range int64(writers) {
		load.Go(func() { // exits when ctx ends; lead waits
			for number := first; ctx.Err() == nil; number += writers {
				if w.Hold && number == 0 {
					w.writeHeld(term)
					continue
				}
				w.writeOne(ctx, term, number)
			}
		})
	}
	load.Wait()
	return nil
}

func (w *writer) writeOne(ctx context.Context, term *tenure.Term, number int64) {
	report := children.Report{Kind: "begun", Term: term.Number(), Sequence: number}
	children.Send(report)
	err := w.write(ctx, term, nameOf(report), func() error { return nil })
	report.Kind = "wrote"
	if err != nil {
		report.Error = err.Error()
	}
	children.Send(report)
}

// writeHeld writes in a transaction that stays open until the parent process sends a line,
// also if the term has ended by then.
func (w *writer) writeHeld(term *tenure.Term) {
	err := w.write(context.Background(), term, "held", func() error {
		children.Send(children.Report{Kind: "held", Term: term.Number()})
		<-w.release
		return nil
	})
	children.Send(children.Report{Kind: "tried", Term: term.Number(), Lead: term.Valid(), Error: fmt.Sprint(err)})
}

// nameOf is the name of the account that a report is about.
func nameOf(r children.Report) string { return fmt.Sprintf("%d/%d", r.Term, r.Sequence) }

// crew is some processes that write with one library, and what they reported.
type crew struct {
	*installation
	given writer

	mu      sync.Mutex
	begun   map[string]bool
	wrote   []string // names of successful writes
	leaders map[int64]*children.Child
	failed  []string
}

func newCrew(t *testing.T, given writer) *crew {
	c := &crew{installation: newInstallation(t), given: given, begun: map[string]bool{}, leaders: map[int64]*children.Child{}}
	c.given.DSN = c.dsn
	return c
}

func (c *crew) start(name string) *children.Child {
	c.Helper()
	given, err := json.Marshal(&c.given)
	if err != nil {
		c.Fatal(err)
	}
	var self *children.Child
	started := make(chan struct{})
	note := func(r children.Report) bool { <-started; c.note(self, r); return r.Kind == "held" || r.Kind == "tried" }
	self, err = children.Start(children.Options{Name: name, Env: []string{writerVariable + "=" + string(given)}, Note: note})
	if err != nil {
		c.Fatal(err)
	}
	close(started)
	c.Cleanup(self.Kill)
	return self
}

func (c *crew) note(from *children.Child, r children.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name := nameOf(r); {
	case r.Kind == "begun":
		c.begun[name] = true
		if leader := c.leaders[r.Term]; leader != nil && leader != from {
			c.failed = append(c.failed, fmt.Sprintf("%s and %s both wrote in term %d", leader.Name, from.Name, r.Term))
		}
		c.leaders[r.Term] = from
	case r.Kind == "wrote" && r.Error == "":
		c.wrote = append(c.wrote, name)
	case r.Kind == "wrote":
		c.failed = append(c.failed, name+": "+r.Error)
	}
}

// leader waits until a process other than one, which may be nil, has written some times
// from now on, and returns the process that wrote last.
func (c *crew) leader(other *children.Child, times int) (leader *children.Child) {
	c.Helper()
	from := -1
	err := children.Until(c.Context(), time.Minute, 5*time.Millisecond, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if from < 0 {
			from = len(c.wrote)
		}
		own := 0
		for _, name := range c.wrote[from:] {
			if leader = c.leaders[termOf(c, name)]; leader != other {
				own++
			}
		}
		if own < times {
			return fmt.Errorf("%d writes, want %d", own, times)
		}
		return nil
	})
	if err != nil {
		c.Fatal(err)
	}
	return leader
}

func termOf(c *crew, name string) (term int64) {
	c.Helper()
	if _, err := fmt.Sscanf(name, "%d/", &term); err != nil {
		c.Fatalf("the account %q has no term: %v", name, err)
	}
	return term
}

// The leader is killed twice under load. Only leaders write, no write takes effect twice,
// none that succeeded is lost, and each writer loses at most the write in flight.
func TestKilledLeaderLosesAtMostWritesInFlight(t *testing.T) {
	t.Parallel()
	for library := range libraries {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, writer{Library: library, Lease: time.Minute}) // a lease that no load of the machine uses up
			const kills = 2
			for i := range kills {
				c.start(fmt.Sprint("process ", i))
			}
			c.start("last process")
			var killed *children.Child
			for range kills {
				killed = c.leader(killed, 20)
				killed.Kill()
			}
			c.leader(killed, 20).Kill()
			c.check(kills + 1)
		})
	}
}

// check compares the table with the reports of processes, of which some were killed while
// they led.
func (c *crew) check(kills int) {
	c.Helper()
	names := c.names(readAccounts)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, failure := range c.failed {
		c.Error(failure)
	}
	written := map[string]bool{}
	var last int64
	for _, name := range names {
		term := termOf(c, name)
		switch {
		case written[name]:
			c.Errorf("%s was written twice", name)
		case !c.begun[name]:
			c.Errorf("%s was written without a request", name)
		case term < last:
			c.Errorf("%s was written after a row of term %d", name, last)
		}
		written[name] = true
		last = term
	}
	for _, name := range c.wrote {
		if !written[name] {
			c.Errorf("%s was reported as written, and is lost", name)
		}
	}
	if lost := len(c.begun) - len(c.wrote); lost > kills*writers {
		c.Errorf("%d writes have no answer after %d kills of %d writers, want at most one of each writer", lost, kills, writers)
	}
	if len(c.leaders) != kills {
		c.Errorf("%d terms, want %d", len(c.leaders), kills)
	}
}

// A leader is paused within a transaction until another process has written in a later
// term. When it resumes, the fence refuses its write.
func TestPausedLeaderCannotWrite(t *testing.T) {
	t.Parallel()
	for library := range libraries {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, writer{Library: library, Lease: 3 * time.Second, Hold: true})
			stale := c.start("first process")
			if _, err := stale.Await(t.Context(), "held", time.Time{}); err != nil {
				t.Fatal(err)
			}
			c.start("second process")
			if err := stale.Stop(); err != nil {
				t.Fatal(err)
			}
			c.leader(stale, 1)
			if err := stale.Say("write"); err != nil {
				t.Fatal(err)
			}
			if err := stale.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			tried, err := stale.Await(t.Context(), "tried", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if tried.Lead || !strings.Contains(tried.Error, "fenced") {
				t.Errorf("the write of the stale leader: %s, term valid %v; want it to be fenced", tried.Error, tried.Lead)
			}
			if slices.Contains(c.names(readAccounts), "held") {
				t.Error("the write of the stale leader took effect")
			}
		})
	}
}
