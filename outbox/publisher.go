package outbox

import "context"

// Publisher sends messages to another system.
//
// Its errors say who is to blame. One that matches [processor.ErrUnavailable] is
// an outage: it is waited for, however long it takes. One that matches
// [processor.ErrPoison] means that the message can never be sent. Any other
// counts as one of the attempts after which a message is given up. A
// [processor.RetryAfterError] says when to try again.
//
// The methods are called by one goroutine at a time for each topic.
type Publisher interface {
	// Name is what the publisher is called in the names of processors: it must
	// not change, since the progress is kept under it.
	Name() string
	// Publish sends messages in their order and returns how many were
	// acknowledged, from the first on. The others are sent again later. It
	// returns when nothing is under way any more; its context ends with the
	// term, or after HandleTimeout.
	Publish(ctx context.Context, messages []Message) (acknowledged int, err error)
}

// HealthChecker is implemented by publishers that know whether they can send. It
// is asked before every batch, and an unhealthy publisher is not given one: so it
// must be quick, and should not ask another system.
type HealthChecker interface {
	Healthy(ctx context.Context) error
}

// Mode says how many messages a publisher is given at once.
type Mode string

// The modes.
const (
	Batch      Mode = "batch"
	Individual Mode = "individual" // one at a time
)

// ModePreferrer is implemented by publishers that may prefer another mode than
// Batch.
type ModePreferrer interface {
	PreferredMode() Mode
}
