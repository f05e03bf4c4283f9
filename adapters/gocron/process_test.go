package gocron_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	tenuregocron "github.com/exactly-one/tenure/adapters/gocron"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

const childVariable = "TENURE_GOCRON_TEST"

// interval is the time between two ticks of the job of a child process.
const interval = 2 * time.Second

// child is a process with a scheduler, whose only job ticks each interval. It runs until
// it is killed.
type child struct {
	DSN    string
	Locker bool

	pool *pgxpool.Pool
	hold atomic.Bool   // the next run waits before it writes
	held chan struct{} // receives a value when the run that waits may write
}

func runChild(given string) {
	c := &child{held: make(chan struct{})}
	err := json.Unmarshal([]byte(given), c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (c *child) run(ctx context.Context) error {
	var err error
	if c.pool, err = pgxpool.New(ctx, c.DSN); err != nil {
		return err
	}
	db, err := postgres.New(c.DSN, postgres.Config{})
	if err != nil {
		return err
	}
	node, err := tenure.Open(ctx, db, tenure.Config{Lease: 3 * time.Second})
	if err != nil {
		return err
	}
	distribution, task, err := c.distribution(ctx, node)
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(distribution)
	if err != nil {
		return err
	}
	at := fmt.Sprintf("*/%d * * * * *", int(interval.Seconds()))
	if _, err := scheduler.NewJob(gocron.CronJob(at, true), gocron.NewTask(task), gocron.WithName("report")); err != nil {
		return err
	}
	scheduler.Start()
	children.Send(children.Report{Kind: "ready"})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "hold":
			c.hold.Store(true)
		case "write":
			c.held <- struct{}{}
		}
	}
	return errors.New("the parent process has ended")
}

// distribution returns the scheduler's option and the task of the job.
func (c *child) distribution(ctx context.Context, node *tenure.Node) (gocron.SchedulerOption, func(context.Context) error, error) {
	if c.Locker {
		locker, err := tenuregocron.NewLocker(node, tenuregocron.LockerConfig{MinInterval: interval / 2})
		return gocron.WithDistributedLocker(locker), locker.Task("report", c.work), err
	}
	election, err := node.Election(tenure.NamedRole("jobs"))
	if err == nil {
		err = election.Start(ctx)
	}
	elector := tenuregocron.NewElector(election)
	return gocron.WithDistributedElector(elector), elector.Task(c.work), err
}

// work is the job. It writes in a fenced transaction, also if its context has ended by
// then, and works a moment longer.
func (c *child) work(ctx context.Context, term *tenure.Term) error {
	tick := time.Now().Add(interval / 10).Truncate(interval).Unix()
	children.Send(children.Report{Kind: "run", Sequence: tick, Term: term.Number()})
	hold := c.hold.Swap(false)
	if hold {
		children.Send(children.Report{Kind: "held", Term: term.Number()})
		<-c.held
	}
	ctx = context.WithoutCancel(ctx)
	err := postgres.InTx(ctx, c.pool, term, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO writes (tick, term) VALUES ($1, $2)`, tick, term.Number())
		return err
	})
	if hold {
		children.Send(children.Report{Kind: "tried", Error: fmt.Sprint(err)})
	}
	time.Sleep(interval / 10)
	return err
}

// crew is some child processes.
type crew struct {
	*testing.T
	dsn    string
	locker bool
	all    []*children.Child
	runs   chan ran
}

// ran is a run that a child has reported.
type ran struct {
	*children.Child
	children.Report
}

func newCrew(t *testing.T, locker bool) *crew {
	t.Helper()
	c := &crew{T: t, dsn: pgtest.Shared(t).Database(t), locker: locker, runs: make(chan ran, 1000)}
	if _, err := pgtest.Conn(t, c.dsn).Exec(t.Context(), `CREATE TABLE writes (id bigserial, tick bigint, term bigint)`); err != nil {
		t.Fatal(err)
	}
	for range nodes {
		c.start()
	}
	return c
}

func (c *crew) start() {
	c.Helper()
	given, err := json.Marshal(&child{DSN: c.dsn, Locker: c.locker})
	if err != nil {
		c.Fatal(err)
	}
	var self *children.Child
	started := make(chan struct{})
	note := func(r children.Report) bool {
		if r.Kind == "run" {
			<-started
			c.runs <- ran{self, r}
		}
		return true
	}
	self, err = children.Start(children.Options{Name: fmt.Sprint("process ", len(c.all)), Env: []string{childVariable + "=" + string(given)}, Note: note})
	if err != nil {
		c.Fatal(err)
	}
	close(started)
	c.Cleanup(self.Kill)
	c.all = append(c.all, self)
	if _, err := self.Await(c.Context(), "ready", time.Time{}); err != nil {
		c.Fatal(err)
	}
}

// next waits for a run that begins from now on, in a child other than one, which may be
// nil.
func (c *crew) next(other *children.Child) ran {
	c.Helper()
	since := time.Now()
	for limit := time.After(time.Minute); ; {
		select {
		case r := <-c.runs:
			if r.Child != other && !r.Time().Before(since) {
				return r
			}
		case <-limit:
			c.Fatalf("no run has begun since %v", since)
		}
	}
}

// holder waits for a child that holds a run back, and returns it.
func (c *crew) holder() *children.Child {
	c.Helper()
	at := -1
	err := children.Until(c.Context(), time.Minute, 5*time.Millisecond, func() error {
		at = slices.IndexFunc(c.all, func(one *children.Child) bool {
			_, held := one.Find("held", time.Time{})
			return held
		})
		if at < 0 {
			return errors.New("no process holds a run back")
		}
		return nil
	})
	if err != nil {
		c.Fatal(err)
	}
	return c.all[at]
}

// The process that runs the job is killed within a run, three times. The others run the
// following ticks. With a locker no tick runs twice; with an elector none does in one
// term, and none twice without a kill between the runs.
func TestKilledProcessesRunEachTickOnce(t *testing.T) {
	t.Parallel()
	for name, locker := range map[string]bool{"elector": false, "locker": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, locker)
			const kills = 3
			for range kills {
				killed := c.next(nil)
				killed.Kill()
				c.next(killed.Child)
				c.start()
			}
			c.next(nil)
			for _, one := range c.all {
				one.Kill()
			}
			c.check(kills)
		})
	}
}

// check checks what the children have written.
func (c *crew) check(kills int) {
	c.Helper()
	db := pgtest.Conn(c, c.dsn)
	rows, err := db.Query(c.Context(), `SELECT tick, term FROM writes ORDER BY id`)
	if err != nil {
		c.Fatal(err)
	}
	type write struct{ Tick, Term int64 }
	writes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[write])
	if err != nil {
		c.Fatal(err)
	}
	again := 0
	for i, w := range writes {
		if i > 0 && w.Term < writes[i-1].Term {
			c.Errorf("term %d wrote after term %d", w.Term, writes[i-1].Term)
		}
		earlier := slices.IndexFunc(writes[:i], func(e write) bool { return e.Tick == w.Tick })
		switch {
		case earlier < 0:
		case c.locker || writes[earlier].Term == w.Term:
			c.Errorf("the tick %d ran in term %d, and again in term %d", w.Tick, writes[earlier].Term, w.Term)
		default:
			again++
		}
	}
	if again > kills {
		c.Errorf("%d ticks ran again in another term, want at most one for each of the %d kills", again, kills)
	}
	if len(writes) < kills {
		c.Errorf("%d runs have written, want at least %d", len(writes), kills)
	}
}

// A process is paused within a run of the job until another one has run a later tick.
// When it resumes, the fence refuses its write.
func TestPausedProcessCannotWriteItsRun(t *testing.T) {
	t.Parallel()
	for name, locker := range map[string]bool{"elector": false, "locker": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, locker)
			for _, one := range c.all {
				if err := one.Say("hold"); err != nil {
					t.Fatal(err)
				}
			}
			stale := c.holder()
			if err := stale.Stop(); err != nil {
				t.Fatal(err)
			}
			for _, one := range c.all {
				if one != stale {
					if err := one.Say("write"); err != nil { // its first run does not wait for long
						t.Fatal(err)
					}
				}
			}
			c.next(stale)
			if err := stale.Say("write"); err != nil {
				t.Fatal(err)
			}
			resumed := time.Now()
			if err := stale.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			tried, err := stale.Await(t.Context(), "tried", resumed)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(tried.Error, "fenced") {
				t.Errorf("the write of the stale run: %s, want it to be fenced", tried.Error)
			}
		})
	}
}
