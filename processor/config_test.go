package processor_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/tenuretest"
)

// Invalid configurations are rejected before anything runs.
func TestAddRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.Node("a", tenure.Config{})
	role := tenure.NamedRole("numbers")
	for name, config := range map[string]processor.GroupConfig{
		"negative cooldown":            {RetryCooldown: -1},
		"negative interval":            {RetryInterval: -1},
		"cooldown above the interval":  {RetryCooldown: 30 * time.Second, RetryInterval: 5 * time.Second},
		"something wrong in elections": {Election: tenure.ElectionConfig{ReconnectGrace: -1}},
	} {
		if _, err := processor.NewGroup(node, role, w.pool, config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v; want ErrInvalidConfig", name, err)
		}
	}
	group, err := processor.NewGroup(node, role, w.pool, processor.GroupConfig{RetryCooldown: 5 * time.Second, RetryInterval: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	usable := processor.Config{
		Name: "counts", Log: w.store.Log(), Handle: func(context.Context, pgx.Tx, []processor.Event) error { return nil },
	}
	for name, change := range map[string]func(*processor.Config){
		"no name":            func(c *processor.Config) { c.Name = "" },
		"no log":             func(c *processor.Config) { c.Log = processor.Log{} },
		"nothing to do":      func(c *processor.Config) { c.Handle = nil },
		"negative batches":   func(c *processor.Config) { c.BatchSize = -1 },
		"enormous batches":   func(c *processor.Config) { c.BatchSize = 1 << 30 },
		"no attempts":        func(c *processor.Config) { c.MaxAttempts = -1 },
		"unknown poison":     func(c *processor.Config) { c.Poison = "ignore" },
		"busy polling":       func(c *processor.Config) { c.PollInterval = time.Nanosecond },
		"shorter than polls": func(c *processor.Config) { c.PollInterval, c.MaxPollInterval = time.Second, time.Millisecond },
		"no time":            func(c *processor.Config) { c.HandleTimeout = -1 },
		"more than all time": func(c *processor.Config) { c.HandleTimeout = math.MaxInt64 },
		"publishing places": func(c *processor.Config) {
			c.Handle, c.CursorsOnly = nil, true
			c.Publish = func(context.Context, *tenure.Term, []processor.Event) (int, error) { return 0, nil }
		},
		"two starts":     func(c *processor.Config) { c.Start = processor.Start{End: true, Time: time.Now()} },
		"tags without =": func(c *processor.Config) { c.Selection.ExactTags = []string{"customer"} },
	} {
		config := usable
		change(&config)
		if err := group.Add(config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%s: %v; want ErrInvalidConfig", name, err)
		}
	}
	if err := group.Add(usable); err != nil {
		t.Fatal(err)
	}
	if err := group.Add(usable); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("a name twice: %v; want ErrInvalidConfig", err)
	}
}

func TestNewGroupRejectsOtherBackends(t *testing.T) {
	t.Parallel()
	node, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Name: "a", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close(context.Background()) }()
	_, err = processor.NewGroup(node, tenure.NamedRole("numbers"), nil, processor.GroupConfig{})
	if !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}
