package dashboard

import (
	"context"
	"time"

	"github.com/exactly-one/tenure/internal/audit"
)

// The bounds on reading the actions of operators.
const (
	maxAudit     = 1000
	auditAge     = 2 * time.Second // how long a reading serves all viewers
	auditTimeout = 10 * time.Second
)

// auditLog is the latest reading of the actions of operators, shared by all viewers.
type auditLog struct {
	read func(context.Context) ([]audit.Entry, error)
	turn chan struct{} // its holder uses the fields below

	entries []audit.Entry
	err     error
	at      time.Time // zero before the first reading
}

// newAuditLog returns nil without a database.
func newAuditLog(config Config) *auditLog {
	if config.Database == nil {
		return nil
	}
	return &auditLog{turn: make(chan struct{}, 1), read: func(ctx context.Context) ([]audit.Entry, error) {
		return audit.Read(ctx, config.Backend, config.Database, "", maxAudit)
	}}
}

// latest returns the actions, and reads them again if the last reading is old. After a
// failure it also waits, however many viewers there are.
func (l *auditLog) latest(ctx context.Context) ([]audit.Entry, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if l.at.IsZero() || time.Since(l.at) >= auditAge {
		// Other viewers get the result too: it does not end with the first request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
		defer cancel()
		l.entries, l.err = l.read(ctx)
		l.at = time.Now()
	}
	return l.entries, l.err
}
