package observer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// workerVariable has the settings of a process that is a worker: a Go program that uses the
// library, which no command is.
const workerVariable = "TENURE_OBSERVER_WORKER"

// worker is what the process does.
type worker struct {
	DSN, Name string
	Shared    int    // roles that all workers share
	Processor string // a processor of events
	Refuses   string // a file: while it exists, the processor refuses all events
}

// work starts a worker.
func (s *scene) work(w worker) *process {
	s.Helper()
	w.DSN = s.dsn
	settings, err := json.Marshal(w)
	if err != nil {
		s.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	return launch(s.T, w.Name, self, []string{workerVariable + "=" + string(settings)})
}

func workerMain(settings string) int {
	var w worker
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := json.Unmarshal([]byte(settings), &w)
	if err == nil {
		err = w.run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (w worker) run(ctx context.Context) error {
	db, err := postgres.New(w.DSN, postgres.Config{})
	if err != nil {
		return err
	}
	defer db.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	member, err := cluster.Join(ctx, db, tenure.Config{Name: w.Name, Lease: lease, Logger: logger}, cluster.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = member.Close(context.WithoutCancel(ctx)) }() // ends within the drain timeout
	if w.Processor != "" {
		return w.process(ctx, db, member.Node())
	}
	spread, err := member.Spread("shards", cluster.SpreadConfig{Roles: cluster.Partitions("shard", w.Shared)})
	if err != nil {
		return err
	}
	return spread.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		report("acquired", term.Role().Name(), term.Number())
		<-ctx.Done()
		report("released", term.Role().Name(), term.Number())
		return nil
	})
}

// process handles events until ctx ends.
func (w worker) process(ctx context.Context, db *postgres.Backend, node *tenure.Node) error {
	pool, err := pgxpool.New(ctx, w.DSN)
	if err != nil {
		return err
	}
	defer pool.Close()
	group, err := processor.NewGroup(node, tenure.NamedRole("mailer"), pool, processor.GroupConfig{})
	if err != nil {
		return err
	}
	err = group.Add(processor.Config{
		Name: w.Processor, Kind: "outbox", Log: eventstore.New(db, eventstore.Config{}).Log(), Poison: processor.PoisonDeadLetter,
		Retry: retry.FixedInterval{Interval: 20 * time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			for i, event := range batch {
				if _, err := os.Stat(w.Refuses); err == nil {
					report("refused", event.Type, 0)
					return i, fmt.Errorf("%w: the receiver answered 422", processor.ErrPoison)
				}
				report("handled", event.Type, 0)
			}
			return len(batch), nil
		},
	})
	if err != nil {
		return err
	}
	return group.Run(ctx)
}

// report prints an event as tenure run does.
func report(kind, role string, term int64) {
	text, err := json.Marshal(event{Time: time.Now(), Event: kind, Role: role, Term: term})
	if err == nil {
		fmt.Println(string(text))
	}
}
