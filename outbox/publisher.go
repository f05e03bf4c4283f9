package outbox

import "context"

// Publisher sends messages to another system.
//
// The kind of error decides what happens next:
//
//   - [processor.ErrUnavailable] is an outage; the processor retries until it ends.
//   - [processor.ErrPoison] is a message that can never be sent.
//   - Any other error counts as one of a limited number of attempts.
//   - A [processor.RetryAfterError] sets the time of the next attempt.
//
// For each topic, one goroutine at a time calls the methods.
type Publisher interface {
	// Name is part of the name of the processor. It must not change, because the cursor is
	// stored under this name.
	Name() string
	// Publish sends messages in order and returns how many of the first ones were
	// acknowledged. The others are sent again later. It must return only when no
	// request is in progress. ctx ends with the term or after HandleTimeout.
	Publish(ctx context.Context, messages []Message) (acknowledged int, err error)
}

// HealthChecker is implemented by publishers that know whether they can send. Healthy is
// called before every batch; after an error the batch waits. Healthy must be fast and
// should not call another system.
type HealthChecker interface {
	Healthy(ctx context.Context) error
}

// Mode says how many messages one call of Publish gets.
type Mode string

// The modes.
const (
	Batch      Mode = "batch"
	Individual Mode = "individual" // one at a time
)

// ModePreferrer is implemented by publishers that can prefer a mode other than Batch.
type ModePreferrer interface {
	PreferredMode() Mode
}
