package kubernetes_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/exactly-one/tenure"
	tenurekubernetes "github.com/exactly-one/tenure/adapters/kubernetes"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

const childVariable = "TENURE_KUBERNETES_TEST"

// settings are what a child process is given.
type settings struct {
	DSN   string
	Lease time.Duration
	Hold  bool // the first write of each term waits for a line of the parent process
}

// childProcess is a process with one elector, which writes while it leads. It ends with
// its standard input.
type childProcess struct {
	settings

	pool    *pgxpool.Pool
	leads   atomic.Bool
	release chan struct{} // receives a value for each line
}

func runChild(given string) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &childProcess{release: make(chan struct{})}
	err := json.Unmarshal([]byte(given), &c.settings)
	go children.Watch(0, children.Leads(c.leads.Load))
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			c.release <- struct{}{}
		}
	}()
	if err == nil {
		err = c.elect(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (c *childProcess) elect(ctx context.Context) error {
	var err error
	if c.pool, err = pgxpool.New(ctx, c.DSN); err != nil {
		return err
	}
	defer c.pool.Close()
	db, err := postgres.New(c.DSN, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	node, err := tenure.Open(ctx, db, tenure.Config{Lease: c.Lease})
	if err != nil {
		return err
	}
	defer func() { _ = node.Close(context.WithoutCancel(ctx)) }()
	lock, err := tenurekubernetes.New(node, tenure.NamedRole(role), config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		leaderelection.RunOrDie(lock.Context(ctx), electorConfig(lock, lock.Lead(c.lead)))
	}
	return nil
}

// lead writes until the elector stops or the term ends.
func (c *childProcess) lead(ctx context.Context, term *tenure.Term) {
	c.leads.Store(true)
	defer c.leads.Store(false)
	if c.Hold {
		children.Hold(term, c.release, func(wait func() error) error {
			return c.write(context.WithoutCancel(ctx), term, "held", wait)
		})
	}
	children.Write(ctx, term, func(ctx context.Context, name string) error {
		return c.write(ctx, term, name, func() error { return nil })
	})
}

// write writes a name in a fenced transaction, and calls then within it.
func (c *childProcess) write(ctx context.Context, term *tenure.Term, name string, then func() error) error {
	return postgres.InTx(ctx, c.pool, term, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO written (name) VALUES ($1)`, name); err != nil {
			return err
		}
		return then()
	})
}

// crew is some child processes, and what they reported.
type crew struct {
	*testing.T
	given  settings
	db     *pgx.Conn
	writes children.Writes
	all    []*children.Child
}

func newCrew(t *testing.T, given settings) *crew {
	t.Helper()
	given.DSN = pgtest.Shared(t).Database(t)
	c := &crew{T: t, given: given, db: pgtest.Conn(t, given.DSN)}
	if _, err := c.db.Exec(t.Context(), `CREATE TABLE written (id bigserial PRIMARY KEY, name text NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *crew) start() *children.Child {
	c.Helper()
	given, err := json.Marshal(&c.given)
	if err != nil {
		c.Fatal(err)
	}
	child, err := children.Start(children.Options{
		Name: fmt.Sprint("process ", len(c.all)), Env: []string{childVariable + "=" + string(given)}, Writes: &c.writes,
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(child.Kill)
	c.all = append(c.all, child)
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

// written returns the names that were written, in their order.
func (c *crew) written() []string {
	c.Helper()
	rows, err := c.db.Query(c.Context(), `SELECT name FROM written ORDER BY id`)
	if err != nil {
		c.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.Fatal(err)
	}
	return names
}

// TestKilledElectorLosesAtMostWritesInFlight: when the leader's process is killed while it writes, an elector of
// another process leads. No two lead together, no write takes effect twice, none that
// succeeded is lost, and each writer loses at most the write in flight.
func TestKilledElectorLosesAtMostWritesInFlight(t *testing.T) {
	t.Parallel()
	c := newCrew(t, settings{})
	for range 3 {
		c.start()
	}
	const kills = 4
	var leader *children.Child
	for range kills {
		leader = c.leader(leader, 20)
		leader.Kill()
		c.start()
	}
	c.leader(leader, 20)
	for _, one := range c.all {
		one.Kill()
	}
	for i, one := range c.all {
		for _, other := range c.all[:i] {
			for _, both := range children.Overlaps(one.Leads(), other.Leads()) {
				t.Errorf("%s and %s led together for %v", one.Name, other.Name, both.Length())
			}
		}
	}
	if err := c.writes.Check(c.written(), kills+1); err != nil {
		t.Error(err)
	}
}

// TestPausedProcessCannotWrite: the leader's process is paused until another one has
// written in a later term. When it resumes, the fence refuses its write.
func TestPausedProcessCannotWrite(t *testing.T) {
	t.Parallel()
	c := newCrew(t, settings{Lease: 3 * time.Second, Hold: true})
	stale := c.start()
	if _, err := stale.Await(t.Context(), "held", time.Time{}); err != nil {
		t.Fatal(err)
	}
	c.given.Hold = false
	c.start()
	if err := c.writes.CheckStale(t.Context(), stale); err != nil {
		t.Error(err)
	}
	if slices.Contains(c.written(), "held") {
		t.Error("the write of the stale leader took effect")
	}
}

func awaitLeader(t *testing.T, all []*children.Child) (leader *children.Child) {
	t.Helper()
	err := children.Until(t.Context(), 30*time.Second, 5*time.Millisecond, func() error {
		for _, c := range all {
			if c.Leading() {
				leader = c
				return nil
			}
		}
		return fmt.Errorf("no process leads")
	})
	if err != nil {
		t.Fatal(err)
	}
	return leader
}
