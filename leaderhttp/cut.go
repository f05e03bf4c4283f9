package leaderhttp

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// cutDelay is how long a handler may take to answer after its term has ended. Then the
// connection is cut if the handler still sends or reads.
const cutDelay = 250 * time.Millisecond

// cutAfter cancels a request when its term ends, and cuts its connection cutDelay
// later. The returned function must be called when the handler has returned.
func cutAfter(term context.Context, w http.ResponseWriter, cancel context.CancelCauseFunc) (returned func()) {
	var (
		mu    sync.Mutex
		done  bool
		timer *time.Timer
	)
	locked := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			f()
		}
	}
	cut := func() {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Unix(1, 0)) // on an error it is not the server's writer: only the context is left
		_ = control.SetReadDeadline(time.Unix(1, 0))
	}
	stop := context.AfterFunc(term, func() {
		cancel(context.Cause(term))
		locked(func() { timer = time.AfterFunc(cutDelay, func() { locked(cut) }) })
	})
	return func() {
		stop()
		locked(func() {
			done = true
			if timer != nil {
				timer.Stop()
			}
		})
	}
}
