package leaderhttp

import (
	"io"
	"sync/atomic"
)

// wait counts a request among those that wait for a leader.
type wait struct {
	proxy   *Proxy
	counted atomic.Bool
}

// begin reports whether the request may wait.
func (w *wait) begin() bool {
	if w.counted.Load() {
		return true
	}
	if w.proxy.waiting.Add(1) > int64(w.proxy.config.MaxWaiting) {
		w.proxy.waiting.Add(-1)
		return false
	}
	w.counted.Store(true)
	return true
}

func (w *wait) end() {
	if w.counted.Swap(false) {
		w.proxy.waiting.Add(-1)
	}
}

// keptBody is the body of a request that a later attempt may send: Close does
// nothing, and it records whether anything was read.
type keptBody struct {
	io.ReadCloser
	read atomic.Bool
}

func (b *keptBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.ReadCloser.Read(p)
}

func (b *keptBody) Close() error { return nil }
