package processor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/statements"
	"github.com/exactly-one/tenure/processor"
)

// crowd is a group of one processor that handles all events and many that select none.
type crowd struct {
	*world
	sent *statements.Counter // by the pool of the processors
}

func newCrowd(t *testing.T, unselective int) *crowd {
	t.Helper()
	c := &crowd{world: newWorld(t), sent: &statements.Counter{}}
	config := c.pool.Config()
	config.ConnConfig.Tracer = c.sent
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	group, err := processor.NewGroup(c.Node("a", tenure.Config{}), tenure.NamedRole("views"), pool, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(config processor.Config) {
		t.Helper()
		config.Log = c.store.Log()
		config.Handle = c.fill
		if err := group.Add(config); err != nil {
			t.Fatal(err)
		}
	}
	add(processor.Config{Name: "counts"})
	for i := range unselective {
		add(processor.Config{Name: fmt.Sprint("selects nothing ", i), Selection: processor.Selection{Types: []string{fmt.Sprint("other", i)}}})
	}
	postgrestest.Run(c.world, group.Run)
	c.awaitReading(unselective + 1)
	return c
}

// awaitReading waits until all processors have caught up.
func (c *crowd) awaitReading(processors int) {
	c.Helper()
	admin := processor.NewAdmin(c.backend, c.pool)
	c.Await("all processors read", func() bool {
		all, err := admin.Lag(c.Context())
		return err == nil && len(all) == processors && allLed(all)
	})
}

func allLed(all []processor.Lag) bool {
	for _, l := range all {
		if !l.Led {
			return false
		}
	}
	return true
}

// appendEach appends events in separate transactions, each when the one before was
// handled, and returns how many statements the processors sent for each.
func (c *crowd) appendEach(events int) float64 {
	c.Helper()
	before := c.total()
	for number := range events {
		c.append(number)
		c.Await("the event is handled", func() bool { return len(c.numbers()) > number })
	}
	return float64(c.total()-before) / float64(events)
}

func (c *crowd) total() (total int) {
	for _, n := range c.sent.Counts() {
		total += n
	}
	return total
}

// Processors that select nothing cost no statement for an event: the log is read once for
// all processors of the group.
func TestProcessorsShareOneReaderOfTheLog(t *testing.T) {
	t.Parallel()
	const events, many = 40, 40
	few := newCrowd(t, 1).appendEach(events)
	crowd := newCrowd(t, many).appendEach(events)
	t.Logf("statements for each event: %.1f with 1 processor that selects nothing, %.1f with %d", few, crowd, many)
	if crowd > 2*few+5 {
		t.Errorf("with %d processors that select nothing, an event costs %.1f statements; want about the %.1f of 1", many, crowd, few)
	}
}

// At rest a group of many processors sends hardly more statements than one of few.
func TestProcessorsShareTheirRest(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	c := newCrowd(t, 49)
	const settled, window = 15 * time.Second, 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), settled)
	<-ctx.Done() // the pauses between looks have grown
	cancel()
	before, sent := c.sent.Counts(), 0
	ctx, cancel = context.WithTimeout(t.Context(), window)
	<-ctx.Done()
	cancel()
	for sql, n := range c.sent.Counts() {
		if n > before[sql] {
			t.Logf("%d times: %.200q", n-before[sql], sql)
		}
		sent += n - before[sql]
	}
	rate := float64(sent) / window.Seconds()
	t.Logf("statements at rest with 50 processors: %.2f/s", rate)
	const most = 0.4 + 2/30.0 // one more of each kind can begin in the window
	if rate > most {
		t.Errorf("50 processors at rest send %.2f statements a second; want at most 0.4", rate)
	}
}
