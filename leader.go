package tenure

import (
	"time"

	"github.com/google/uuid"
)

// Leader is who led a role when it was looked up.
type Leader struct {
	Role       string
	Term       int64
	NodeID     uuid.UUID
	NodeName   string
	Host       string
	AcquiredAt time.Time // by the database's clock
	LeaseUntil time.Time // by the database's clock

	// ValidFor is how long the lease still ran when the leader was looked up,
	// computed by the database; ReadAt is when the question was sent, with its
	// monotonic reading.
	ValidFor time.Duration
	ReadAt   time.Time
}

// Valid reports whether the leader's lease still runs: the remaining time as
// the database computed it, aged on the local monotonic clock. No local clock
// is compared with the database's.
func (l Leader) Valid() bool {
	return l.Term > 0 && time.Since(l.ReadAt) < l.ValidFor
}
