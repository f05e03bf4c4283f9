package processor

import (
	"context"
	"sync"
	"time"

	"github.com/exactly-one/tenure/internal/reach"
)

// trouble finds out that no processor of a group can reach the database. Then the leader
// gives its role up. It is safe for concurrent use.
type trouble struct {
	giveUp context.CancelCauseFunc // ends the work of the term

	mu sync.Mutex
	// Guarded by mu.
	watch   reach.Watch
	of      int                // the number of processors
	failing map[*loop]struct{} // whose last step failed
	reason  error              // why the leader has given up
}

// worked records a successful step of a processor.
func (t *trouble) worked(l *loop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failing, l)
	t.watch.Worked()
}

// failed records a failed step. If all processors fail, it probes the database.
func (t *trouble) failed(ctx context.Context, l *loop, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failing[l] = struct{}{}
	if len(t.failing) < t.of || ctx.Err() != nil {
		return
	}
	if err := t.watch.Failed(ctx, began); err != nil {
		t.reason = err
		t.giveUp(err)
	}
}
