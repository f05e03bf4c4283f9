package processor

import (
	"context"
	"errors"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/printable"
)

// reportError logs why the loop cannot continue now, and records it in the processor's row.
// lasted is how long the failed step took.
func (l *loop) reportError(ctx context.Context, err error, lasted time.Duration) {
	unusable := !l.begun && errors.Is(err, tenure.ErrInvalidConfig)
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, ErrOwned):
		l.recordRefusal(ctx, err)
		return
	case !unusable:
		l.log.Warn("processing failed", "error", err)
	case err.Error() != l.refusal: // once until that changes
		l.refusal = err.Error()
		l.log.Error("the processor cannot begin with its configuration", "error", err)
	}
	limited, cancel := context.WithTimeout(ctx, l.trustWindow())
	defer cancel()
	if unusable {
		_, failure := l.database.Exec(limited, l.tables.SQL(addStuck), l.config.Name, l.config.Kind, l.term.Role().Name(), l.config.Log.Name)
		if failure != nil && ctx.Err() == nil {
			l.log.Warn("recording that failed", "error", failure)
		}
	}
	if failure := l.recordStuck(limited, err, lasted); failure != nil && ctx.Err() == nil {
		l.log.Warn("recording that failed", "error", failure)
	}
}

// recordStuck records the processor as unable to work, although no event is to blame: no
// attempt is counted. It also runs beside a hanging handler.
func (l *loop) recordStuck(ctx context.Context, cause error, lasted time.Duration) error {
	_, err := l.database.Exec(ctx, l.tables.SQL(recordStuck), append(l.claimArgs(), printable.Clip(cause.Error(), maxError),
		float64(lasted)/float64(time.Millisecond))...)
	return err
}

// reportWork records the processor as working again. Only a step with a read of the log
// proves it.
func (l *loop) reportWork(ctx context.Context, done stepResult) {
	if !l.state.stuck || done.why == suspended || done.why == delayed {
		return
	}
	limited, cancel := context.WithTimeout(ctx, l.trustWindow())
	defer cancel()
	_, err := l.database.Exec(limited, l.tables.SQL(recordWorking), l.claimArgs()...)
	if err == nil {
		l.state.stuck = false
		l.log.Info("the processor works again")
		return
	}
	if ctx.Err() == nil {
		l.log.Warn("recording that the processor works again failed", "error", err)
	}
}
