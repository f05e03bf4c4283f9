package outboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// variable makes a test program a node instead; its value is the order.
const variable = "TENURE_OUTBOX_CHILD"

// lease is short, so that a leader that was stopped is replaced soon.
const lease = time.Second

// order is the configuration of a child.
type order struct {
	DSN, Schema, Name, Target string
}

// Kinds of reports of a child.
const (
	ready      = "ready"
	publishing = "publishing"
	published  = "published"
)

// Open opens the publisher of a child, for the target of [Options].
type Open func(target string) (publisher outbox.Publisher, closing func(), err error)

// Main runs the tests of a package, or the life of a child. It does not return.
func Main(m *testing.M, open Open) {
	text := os.Getenv(variable)
	if text == "" {
		pgtest.Main(m)
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = live(o, open)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "child %s: %v\n", o.Name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// live is the life of a child; it ends when its standard input does.
func live(o order, open Open) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	publisher, closing, err := open(o.Target)
	if err != nil {
		return err
	}
	defer closing()
	backend, err := postgres.New(o.DSN, postgres.Config{Schema: o.Schema})
	if err != nil {
		return err
	}
	defer backend.Close()
	pool, err := openPool(ctx, o)
	if err != nil {
		return err
	}
	defer pool.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})).With("child", o.Name)
	node, err := tenure.Open(ctx, backend, tenure.Config{Name: o.Name, Lease: lease, CheckInterval: lease / 4, Logger: logger})
	if err != nil {
		return err
	}
	group, err := newGroup(node, pool, outbox.Topic{
		Name: "orders", Log: eventstore.New(backend, eventstore.Config{}).Log(), Publishers: []outbox.Publisher{watched{publisher}},
		Processing: processor.Config{Retry: retry.FixedInterval{Interval: 20 * time.Millisecond}},
	})
	if err != nil {
		return err
	}
	children.Send(children.Report{Kind: ready})
	if err := group.Run(ctx); err != nil {
		return err
	}
	return node.Close(context.WithoutCancel(ctx))
}

// poolName is what the server calls the connections of a child's pool.
func poolName(schema, child string) string { return child + " " + schema }

func openPool(ctx context.Context, o order) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(o.DSN)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = poolName(o.Schema, o.Name)
	return pgxpool.NewWithConfig(ctx, config)
}

func newGroup(node *tenure.Node, database processor.Database, topic outbox.Topic) (*processor.Group, error) {
	group, err := processor.NewGroup(node, outbox.Role(), database, processor.GroupConfig{})
	if err != nil {
		return nil, err
	}
	processors, err := outbox.Processors(topic)
	if err != nil {
		return nil, err
	}
	for _, p := range processors {
		if err := group.Add(p); err != nil {
			return nil, err
		}
	}
	return group, nil
}

// watched reports when its publisher is at work.
type watched struct{ outbox.Publisher }

func (w watched) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	children.Send(children.Report{Kind: publishing, Term: messages[0].Term})
	defer children.Send(children.Report{Kind: published, Term: messages[0].Term})
	return w.Publisher.Publish(ctx, messages)
}

func (w watched) Healthy(ctx context.Context) error {
	if checker, ok := w.Publisher.(outbox.HealthChecker); ok {
		return checker.Healthy(ctx)
	}
	return nil
}

func (w watched) PreferredMode() outbox.Mode {
	if preferrer, ok := w.Publisher.(outbox.ModePreferrer); ok {
		return preferrer.PreferredMode()
	}
	return outbox.Batch
}
