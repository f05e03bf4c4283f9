package processor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
)

// PoisonPolicy says what becomes of an event that its handler cannot cope with.
type PoisonPolicy string

// The policies for poison.
const (
	// PoisonStop fails the processor when MaxAttempts attempts in a row have failed:
	// it waits until somebody retries, skips or rewinds it. Nothing is lost and
	// nothing overtakes.
	PoisonStop PoisonPolicy = "stop"
	// PoisonDeadLetter puts the event into the table of dead letters then, from where
	// it can be replayed, and goes on behind it.
	PoisonDeadLetter PoisonPolicy = "dead_letter"
)

// Config configures a processor. Name, Log, and one of Handle and Publish must be
// set.
type Config struct {
	Name string // unique in the installation
	Kind string // for people, such as "view" or "outbox"; default "processor"
	Log  Log
	// Selection says which events of the log the processor is given. Default
	// all.
	Selection Selection

	// Handle handles a batch within a transaction, in which the processor also
	// moves its cursor and, last, checks its term: what it does through the
	// transaction happens exactly once. Its context ends with the term. It must
	// not end the transaction. If a statement, or a pause between two of them,
	// takes longer than a term may be trusted without a heartbeat, nine tenths of
	// the node's lease by default, the server ends it: nothing that a lost leader
	// has begun may last longer.
	Handle func(ctx context.Context, tx pgx.Tx, batch []Event) error
	// Publish handles a batch outside of any transaction and returns how many
	// events, from the first on, were taken. The others are tried again, so each
	// event is handled at least once, in order. An error can come with any
	// number.
	Publish func(ctx context.Context, term *tenure.Term, batch []Event) (taken int, err error)
	// CursorsOnly has Handle given the events' places and types alone, which is
	// faster where Handle has the server read the rest: from the place of the
	// first event to that of the last. What lies between them and is not
	// selected, it must leave out by itself.
	CursorsOnly bool
	// Reset empties what Handle fills, when the processor is rebuilt, in the
	// transaction that moves the cursor to the start. Without it a rebuild is
	// refused.
	Reset func(ctx context.Context, tx pgx.Tx) error

	// BatchSize is the most events in a batch. Default 100.
	BatchSize int
	// PollInterval is how long to wait when the log has nothing new, doubling up
	// to MaxPollInterval while that stays so. News of an insert ends the wait.
	// Defaults 1 s and 5 s.
	PollInterval    time.Duration
	MaxPollInterval time.Duration
	// HandleTimeout bounds one call of Handle or Publish: its context ends then.
	// Reading and recording around it have as long as a term may be trusted
	// without a heartbeat; a database that does not answer is given up then, and
	// asked again on another connection. Default 30 s.
	HandleTimeout time.Duration
	// ProgressInterval is how long a processor with Publish may keep its
	// progress to itself while batch follows batch: so much is published again
	// after a crash. Default 50 ms.
	ProgressInterval time.Duration

	// Retry says how long to wait after an attempt that failed; the time is kept
	// in the database. Default 1 s doubling to 1 min, jittered by half.
	Retry retry.Strategy
	// MaxAttempts is how many attempts in a row may fail, in whatever terms, before
	// Poison decides; see [ErrPoison] and [ErrUnavailable]. Default 10.
	MaxAttempts int
	// Poison is Stop by default.
	Poison PoisonPolicy
}

func (c Config) withDefaults() Config {
	if c.Kind == "" {
		c.Kind = "processor"
	}
	if c.Poison == "" {
		c.Poison = PoisonStop
	}
	if c.Retry == nil {
		c.Retry = retry.ExponentialBackoff{Base: time.Second, Max: time.Minute, Jitter: 0.5}
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.PollInterval, time.Second},
		{&c.HandleTimeout, 30 * time.Second},
		{&c.ProgressInterval, 50 * time.Millisecond},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if c.MaxPollInterval == 0 {
		c.MaxPollInterval = max(c.PollInterval, 5*time.Second)
	}
	if c.BatchSize == 0 {
		c.BatchSize = 100
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 10
	}
	return c
}

// columns are what is read of events besides their places and types.
func (c Config) columns() string {
	if c.CursorsOnly {
		return noContents
	}
	return contents
}

// validate checks a configuration that has its defaults.
func (c Config) validate() error {
	const mostEvents = 100_000
	switch {
	case tenure.NamedRole(c.Name).Validate() != nil:
		return invalid("the processor's name %q cannot be used: 1 to 255 bytes of UTF-8 without control characters", c.Name)
	case c.Log.query == "":
		return invalid("the processor %s has no log: give one of package eventstore, or of Query", c.Name)
	case (c.Handle == nil) == (c.Publish == nil):
		return invalid("the processor %s needs one of Handle and Publish", c.Name)
	case c.CursorsOnly && c.Handle == nil:
		return invalid("the processor %s publishes events: it needs all of them, not only their places", c.Name)
	case c.BatchSize < 1 || c.BatchSize > mostEvents:
		return invalid("the batch size of %s is %d; it must be between 1 and %d", c.Name, c.BatchSize, mostEvents)
	case c.MaxAttempts < 1:
		return invalid("the most attempts of %s are %d; the least is 1", c.Name, c.MaxAttempts)
	case c.Poison != PoisonStop && c.Poison != PoisonDeadLetter:
		return invalid("the poison policy of %s is %q; it must be %q or %q", c.Name, c.Poison, PoisonStop, PoisonDeadLetter)
	case c.PollInterval < time.Millisecond || c.MaxPollInterval < c.PollInterval:
		return invalid("the poll interval of %s is %v, up to %v; the least is 1ms, and the second must not be shorter", c.Name, c.PollInterval, c.MaxPollInterval)
	case c.HandleTimeout < time.Millisecond || c.ProgressInterval < 0:
		return invalid("the times of %s must be positive", c.Name)
	}
	return c.Selection.validate()
}
