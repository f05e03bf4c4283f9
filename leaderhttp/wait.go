package leaderhttp

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
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

// maxKept is how much of a body is kept for a later attempt. It is more than the
// transport reads before it begins to send.
const maxKept = 64 << 10

// keptBody is the body of a request that a later attempt may send. It keeps what
// was read while nothing was sent. Close does nothing.
type keptBody struct {
	io.ReadCloser
	sent *atomic.Bool // of the present attempt
	kept []byte
	next int  // the first byte of kept that this attempt has not read
	lost bool // more was read than is kept

	client *http.ResponseController
	ended  atomic.Bool // nothing is left to read
	cut    atomic.Bool
}

// interrupt makes Read fail, also one that waits for the client: the transport reports
// an error, and the server sends an answer, only when Read has returned.
func (b *keptBody) interrupt() {
	if !b.ended.Load() {
		b.cut.Store(true)
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // an error means that it is not the server's writer
	}
}

// interrupted reports whether the client may still be there although its connection
// can no longer be read. A request without a body is not interrupted.
func (b *keptBody) interrupted() bool { return b != nil && b.cut.Load() }

func (b *keptBody) Read(p []byte) (int, error) {
	if b.next < len(b.kept) {
		n := copy(p, b.kept[b.next:])
		b.next += n
		return n, nil
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	switch {
	case b.sent.Load() || b.lost:
		b.kept = nil
		b.next, b.lost = 0, b.lost || n > 0
	case len(b.kept)+n > maxKept:
		b.lost = true
	default:
		b.kept = append(b.kept, p[:n]...)
		b.next = len(b.kept)
	}
	return n, err
}

func (b *keptBody) Close() error { return nil }
