package hostile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/hostile"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

var (
	cases   = flag.Int64("cases", 0, "cases of a hostile server; 0: 1,000, and 200 in a short run")
	answers = flag.Int64("damages", 0, "damaged answers of a hostile server, instead of cases")
	first   = flag.Uint64("seed", 1, "the seed of the first case")
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	lease  = 2 * time.Second
	margin = lease / 10
	beats  = 12 // more than eight: then the node counts its locks
	bound  = time.Minute

	// patience is how long a case may take, of real time: in a bubble, time can stand still or
	// pass without end.
	patience = 2 * time.Minute

	// driverLinger is how long a goroutine of the driver tries to cancel a statement.
	driverLinger = 20 * time.Second
)

// client is what a case or the recording runs on a server.
type client struct {
	t       *testing.T
	server  *hostile.Server // nil while a recording is made
	backend *postgres.Backend
	led     bool
	stats   tenure.Stats
	errs    []error
}

func newClient(t *testing.T, dsn string, dial func(pgconn.DialFunc) pgconn.DialFunc) *client {
	backend, err := postgres.New(dsn, postgres.Config{
		Schema: schema, ManualMigrations: true, WatchPeriod: time.Second,
		Connect: func(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
			config.DialFunc = dial(config.DialFunc)
			return pgx.ConnectConfig(ctx, config)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, backend: backend}
}

// call makes a call that must return within the bound.
func (c *client) call(what string, fn func(context.Context) error) error {
	began := time.Now()
	err := fn(context.Background())
	if took := time.Since(began); took > bound {
		c.t.Errorf("%s returned after %v, want at most %v: %v", what, took, bound, c.server)
	}
	if err != nil {
		c.errs = append(c.errs, err)
	}
	return err
}

// run lets a node lead and asks the reader of the backend.
func (c *client) run() {
	defer c.backend.Close()
	var node *tenure.Node
	err := c.call("Open", func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		node, err = tenure.Open(ctx, c.backend, tenure.Config{
			Name: "victim", Lease: lease, Margin: margin, RefreshInterval: lease / 8, CheckInterval: lease / 4,
			Logger: slog.New(slog.DiscardHandler),
		})
		return err
	})
	if err == nil {
		c.lead(node)
	}
	c.ask()
	if node != nil {
		_ = c.call("Close", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return node.Close(ctx)
		})
	}
}

// lead campaigns until the node has sent its heartbeats, and steps down.
func (c *client) lead(node *tenure.Node) {
	election, err := node.Election(tenure.NamedRole("billing"))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() { // exits with ctx
		defer close(done)
		_ = election.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	for ctx.Err() == nil && !(c.led && node.Stats().Heartbeats.Count >= beats) {
		at := time.Now()
		if election.IsLeader() {
			c.led = true
			if c.server != nil && !c.server.MayLead(at, lease-margin) {
				c.t.Errorf("the node leads without an acknowledgment: %v", c.server)
				break // the bubble ends when the node has closed
			}
		}
		time.Sleep(lease / 40)
	}
	_ = c.call("Members", func(context.Context) error { _, err := node.Members(ctx); return err })
	_ = c.call("StepDown", func(context.Context) error { return election.StepDown(ctx) })
	cancel()
	<-done
	c.stats = node.Stats()
}

// ask reads what status pages show.
func (c *client) ask() {
	for name, read := range map[string]func(context.Context) error{
		"Leaders": func(ctx context.Context) error { _, err := c.backend.Leaders(ctx); return err },
		"Holders": func(ctx context.Context) error { _, err := c.backend.Holders(ctx); return err },
		"Members": func(ctx context.Context) error { _, err := c.backend.Members(ctx); return err },
		"History": func(ctx context.Context) error { _, err := c.backend.History(ctx, history.Query{}); return err },
	} {
		_ = c.call(name, read)
	}
}

// schema is the same in each run, since its name is in the questions.
const schema = "hostile"

// record runs a client on a real server.
func record(t *testing.T) *hostile.Recording {
	t.Helper()
	server := pgtest.Shared(t)
	migrating, err := postgres.New(server.DSN(), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer migrating.Close()
	if err := migrating.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	recording := new(hostile.Recording)
	c := newClient(t, server.DSN(), recording.Through)
	if c.run(); !c.led || len(c.errs) > 0 {
		t.Fatalf("on the real server, the node led: %v; errors: %v", c.led, errors.Join(c.errs...))
	}
	return recording
}

func dial(t *testing.T, server *hostile.Server, connect pgconn.DialFunc) *client {
	c := newClient(t, "postgres://postgres@192.0.2.1/postgres?sslmode=disable", func(pgconn.DialFunc) pgconn.DialFunc { return connect })
	c.server = server
	return c
}

// play runs one case.
func play(t *testing.T, server *hostile.Server) (c *client) {
	late := time.AfterFunc(patience, func() {
		panic(fmt.Sprintf("a case has not ended after %v: %v", patience, server))
	})
	defer late.Stop()
	synctest.Test(t, func(t *testing.T) {
		c = dial(t, server, server.Dial)
		c.run()
		time.Sleep(driverLinger)
	})
	return c
}

func TestHonestRecordingElectsALeader(t *testing.T) {
	server := hostile.NewServer(record(t), 0)
	c := play(t, server)
	if !c.led || len(c.errs) > 0 {
		t.Errorf("with the recorded answers, the node led: %v; errors: %v", c.led, errors.Join(c.errs...))
	}
	if unknown := server.Unknown(); len(unknown) > 0 {
		t.Errorf("%d questions are not in the recording: %q", len(unknown), unknown)
	}
}

// TestRowsWithoutValuesAreRefused: a row that lacks what the statement returns is an
// error, and no panic.
func TestRowsWithoutValuesAreRefused(t *testing.T) {
	recording := record(t)
	null := func(at int) func([][]byte) [][]byte {
		return func(values [][]byte) [][]byte { values[at] = nil; return values }
	}
	for name, test := range map[string]struct {
		statement string
		change    func([][]byte) [][]byte
	}{
		"the locks that a heartbeat counted":  {"heartbeat", null(3)},
		"when a term began":                   {"take", null(3)},
		"the id of a node":                    {"members", null(0)},
		"half of the columns of the registry": {"members", func(values [][]byte) [][]byte { return values[:5] }},
	} {
		t.Run(name, func(t *testing.T) {
			server := hostile.NewServer(recording, 0)
			server.Change(test.statement, test.change)
			if c := play(t, server); len(c.errs) == 0 && c.stats.Sessions == 1 && c.stats.HeartbeatFailures == 0 {
				t.Error("the rows were accepted")
			}
		})
	}
}

// TestReaderKeepsNoNotifications: the connection that reads what status pages show lives on,
// and nothing takes notifications from it.
func TestReaderKeepsNoNotifications(t *testing.T) { // not parallel: it measures the heap
	server := hostile.NewServer(record(t), 0)
	server.Notify(1000)
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, server, server.Dial)
		defer c.backend.Close()
		for range 5 {
			c.ask()
		}
		if len(c.errs) > 0 {
			t.Error(errors.Join(c.errs...))
		}
		runtime.GC()
		var stats runtime.MemStats
		if runtime.ReadMemStats(&stats); stats.HeapAlloc > hostile.MaxHeap {
			t.Errorf("the live heap had %d MB, want at most %d MB", stats.HeapAlloc>>20, hostile.MaxHeap>>20)
		}
	})
}

// TestHostileServerHarmsNoClient: whatever a server sends, a node, its watch and the reader
// neither panic nor need more memory than the bound, every call returns, and no node leads
// without an acknowledgment.
func TestHostileServerHarmsNoClient(t *testing.T) { // not parallel: it measures the heap
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the live heap is measured after a collection
	f := &fuzz{recording: record(t), limit: *cases, damages: map[string]int{}, began: time.Now()}
	if f.limit == 0 {
		f.limit = 1000
		if testing.Short() {
			f.limit = 200
		}
	}
	if *answers > 0 {
		f.limit = math.MaxInt64
	}
	t.Run("cases", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), f.work)
		}
	})
	t.Logf("%d damaged answers in %d cases in %v, %d with a leader; largest live heap %d MB",
		f.total, f.done, time.Since(f.began).Round(time.Second), f.led, f.peak>>20)
	for _, name := range slices.Sorted(maps.Keys(f.damages)) {
		t.Logf("%7d %s", f.damages[name], name)
	}
}

// fuzz runs cases on all processors.
type fuzz struct {
	recording *hostile.Recording
	limit     int64
	began     time.Time
	next      atomic.Int64
	alone     sync.RWMutex // held for writing by a case that is measured alone

	mu          sync.Mutex // guards the rest
	damages     map[string]int
	total, done int64
	led         int
	peak        uint64
}

func (f *fuzz) work(t *testing.T) {
	t.Parallel()
	for i := f.next.Add(1) - 1; i < f.limit && !t.Failed(); i = f.next.Add(1) - 1 {
		seed := *first + uint64(i)
		f.alone.RLock()
		server := hostile.NewServer(f.recording, seed)
		led := play(t, server).led
		f.alone.RUnlock()
		faults, peak := server.Faults()
		if peak > hostile.MaxHeap { // of all cases that ran together
			faults, peak = f.measure(t, seed)
		}
		for _, fault := range faults {
			t.Errorf("%s: %v", fault, server)
		}
		if peak > hostile.MaxHeap {
			t.Errorf("the live heap had %d MB, want at most %d MB: %v", peak>>20, hostile.MaxHeap>>20, server)
		}
		if f.add(server, led, peak) {
			return
		}
	}
}

// measure runs a case alone.
func (f *fuzz) measure(t *testing.T, seed uint64) (faults []string, peak uint64) {
	f.alone.Lock()
	defer f.alone.Unlock()
	server := hostile.NewServer(f.recording, seed)
	play(t, server)
	return server.Faults()
}

// add counts a case, and reports whether there are enough damaged answers.
func (f *fuzz) add(server *hostile.Server, led bool, peak uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done++
	for name, count := range server.Damages() {
		f.damages[name] += count
		f.total += int64(count)
	}
	if f.peak = max(f.peak, peak); led {
		f.led++
	}
	return *answers > 0 && f.total >= *answers
}
