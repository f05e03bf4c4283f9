package processor

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/timespan"
	"github.com/exactly-one/tenure/retry"
)

// PoisonPolicy is the treatment of an event its handler cannot handle.
type PoisonPolicy string

// The policies for poison events.
const (
	// PoisonStop stops the processor, with the status failed, after MaxAttempts
	// failed attempts in a row. It waits until an operator retries, skips or
	// rewinds. No event is lost or overtaken.
	PoisonStop PoisonPolicy = "stop"
	// PoisonDeadLetter moves the event to the dead letters, from where it can
	// be replayed, and continues with the next event.
	PoisonDeadLetter PoisonPolicy = "dead_letter"
)

// Config configures a processor. Name, Log, and either Handle or Publish are
// required.
type Config struct {
	Name string // unique in the installation
	Kind string // shown to operators, such as "view" or "outbox"; default "processor"
	Log  Log
	// Selection selects the events for the processor. Default: all.
	Selection Selection
	// Start is where the processor begins to read if it is new. Default: the beginning
	// of the log.
	Start Start

	// Handle handles a batch in a transaction. The processor also moves its cursor in the
	// transaction and, last, checks its term: the effects of Handle through the
	// transaction happen exactly once. Its context ends with the term. It must not end the
	// transaction. The server ends the transaction if a statement, or a pause between two,
	// takes longer than a term can be valid without a heartbeat (by default 90% of the
	// node's lease). So no transaction of a stale leader lasts longer.
	Handle func(ctx context.Context, tx pgx.Tx, batch []Event) error
	// Publish handles a batch outside of any transaction and returns how many
	// events, counted from the first, were taken. The others are retried, so
	// each event is handled at least once, in order. taken is also used if err
	// is not nil.
	Publish func(ctx context.Context, term *tenure.Term, batch []Event) (taken int, err error)
	// CursorsOnly passes only the cursors and types of events to Handle. This is faster if
	// the server reads the rest in a statement of Handle: from the first event's cursor to
	// the last event's. The statement must exclude unselected events in between.
	CursorsOnly bool
	// Reset empties the output of Handle when the processor is rebuilt, in the transaction
	// of the cursor's move to the start. Without Reset, rebuilds are refused.
	Reset func(ctx context.Context, tx pgx.Tx) error

	// BatchSize is the maximum number of events in a batch. Default 100.
	BatchSize int
	// PollInterval is how long to wait if the log has no new events. It doubles
	// up to MaxPollInterval while there are none. A notification of an insert
	// ends the wait. Defaults: 1 s and 5 s.
	PollInterval    time.Duration
	MaxPollInterval time.Duration
	// HandleTimeout limits one call of Handle or Publish: its context then ends. Reading
	// and recording around the call have the trust window as their limit. If the database
	// does not respond by then, the processor retries on another connection. Default 30 s.
	HandleTimeout time.Duration
	// ProgressInterval is how long a processor with Publish may leave its
	// progress unsaved while batches follow one another. After a crash, the
	// unsaved events are published again. Default 50 ms.
	ProgressInterval time.Duration

	// Retry returns how long to wait after a failed attempt; the time is stored in the
	// database. If it panics, the wait is MaxPollInterval. Default: 1 s, doubling to 1
	// min, with a jitter of half.
	Retry retry.Strategy
	// MaxAttempts is how many attempts in a row may fail, across terms, before
	// Poison decides; see [ErrPoison] and [ErrUnavailable]. Default 10.
	MaxAttempts int
	// Poison is the policy for poison events. Default PoisonStop.
	Poison PoisonPolicy
}

func (c Config) withDefaults() Config {
	c.Kind = cmp.Or(c.Kind, "processor")
	c.Poison = cmp.Or(c.Poison, PoisonStop)
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
	c.MaxPollInterval = cmp.Or(c.MaxPollInterval, max(c.PollInterval, 5*time.Second))
	c.BatchSize = cmp.Or(c.BatchSize, 100)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 10)
	return c
}

// columns returns the columns to read in addition to cursors and types.
func (c Config) columns() string {
	if c.CursorsOnly {
		return noContents
	}
	return contents
}

// validate checks a configuration after its defaults are set.
func (c Config) validate() error {
	const mostEvents = 100_000
	switch {
	case tenure.NamedRole(c.Name).Validate() != nil:
		return invalid("the processor's name %q is invalid: it must be 1 to 255 bytes of UTF-8 without control characters", c.Name)
	case c.Log.query == "":
		return invalid("the processor %s has no log: use one of package eventstore or LogFromQuery", c.Name)
	case (c.Handle == nil) == (c.Publish == nil):
		return invalid("the processor %s needs one of Handle and Publish", c.Name)
	case c.CursorsOnly && c.Handle == nil:
		return invalid("the processor %s publishes events: it cannot use CursorsOnly", c.Name)
	case c.BatchSize < 1 || c.BatchSize > mostEvents:
		return invalid("the batch size of %s is %d; it must be between 1 and %d", c.Name, c.BatchSize, mostEvents)
	case c.MaxAttempts < 1:
		return invalid("MaxAttempts of %s is %d; it must be at least 1", c.Name, c.MaxAttempts)
	case c.Poison != PoisonStop && c.Poison != PoisonDeadLetter:
		return invalid("the poison policy of %s is %q; it must be %q or %q", c.Name, c.Poison, PoisonStop, PoisonDeadLetter)
	}
	return cmp.Or(c.validateTimes(), c.Start.validate(c.Name), c.Selection.validate())
}

func (c Config) validateTimes() error {
	switch {
	case c.PollInterval < time.Millisecond || c.MaxPollInterval < c.PollInterval:
		return invalid("the poll interval of %s is %v, up to %v; it must be at least 1ms, and the maximum must not be shorter", c.Name, c.PollInterval, c.MaxPollInterval)
	case c.HandleTimeout < time.Millisecond || c.ProgressInterval < 0:
		return invalid("the durations of %s must be positive", c.Name)
	case max(c.MaxPollInterval, c.HandleTimeout, c.ProgressInterval) > timespan.Longest:
		return invalid("the durations of %s must be at most %v", c.Name, timespan.Longest)
	}
	return nil
}
