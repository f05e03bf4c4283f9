package recipes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/postgres"
)

const writerVariable = "TENURE_RECIPE_TEST"

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
	if w.Hold {
		children.Hold(term, w.release, func(wait func() error) error { return w.write(context.WithoutCancel(ctx), term, "held", wait) })
	}
	children.Write(ctx, term, func(ctx context.Context, name string) error {
		return w.write(ctx, term, name, func() error { return nil })
	})
	return nil
}

// crew is some processes that write with one library, and what they reported.
type crew struct {
	*installation
	given  writer
	writes children.Writes
}

func newCrew(t *testing.T, given writer) *crew {
	c := &crew{installation: newInstallation(t), given: given}
	c.given.DSN = c.dsn
	return c
}

func (c *crew) start(name string) *children.Child {
	c.Helper()
	given, err := json.Marshal(&c.given)
	if err != nil {
		c.Fatal(err)
	}
	child, err := children.Start(children.Options{Name: name, Env: []string{writerVariable + "=" + string(given)}, Writes: &c.writes})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(child.Kill)
	return child
}

// leader waits until a process other than one, which may be nil, has written some times
// from now on, and returns it.
func (c *crew) leader(other *children.Child, times int) *children.Child {
	c.Helper()
	leader, err := c.writes.Await(c.Context(), other, times)
	if err != nil {
		c.Fatal(err)
	}
	return leader
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
			for i := range kills + 1 {
				c.start(fmt.Sprint("process ", i))
			}
			var leader *children.Child
			for range kills + 1 { // the last one too, so that nothing writes after that
				leader = c.leader(leader, 20)
				leader.Kill()
			}
			if err := c.writes.Check(c.names(readAccounts), kills+1); err != nil {
				t.Error(err)
			}
		})
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
			c.given.Hold = false
			c.start("second process")
			if err := c.writes.CheckStale(t.Context(), stale); err != nil {
				t.Error(err)
			}
			if slices.Contains(c.names(readAccounts), "held") {
				t.Error("the write of the stale leader took effect")
			}
		})
	}
}
