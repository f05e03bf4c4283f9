package leaderhttp

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// wait counts a request waiting for a leader.
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

// keptBody is the body of a request for later attempts. It keeps the read bytes while
// nothing was sent.
type keptBody struct {
	io.ReadCloser

	present atomic.Pointer[attemptBody]
	lost    atomic.Bool // more was read than is kept

	mu   sync.Mutex // also held while Read waits for the client
	kept []byte     // guarded by mu

	client *http.ResponseController
	ended  atomic.Bool // nothing is left to read
	cut    atomic.Bool
}

// interrupt makes Read fail, also one waiting for the client: the transport reports an
// error, and the server sends an answer, only when Read has returned.
func (b *keptBody) interrupt() {
	if !b.ended.Load() {
		b.cut.Store(true)
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // an error means that it is not the server's writer
	}
}

// interrupted reports whether the client may still be there although its connection
// can no longer be read. A request without a body is not interrupted.
func (b *keptBody) interrupted() bool { return b != nil && b.cut.Load() }

// attemptBody is the body for one attempt. Close does nothing. When the attempt is over,
// the transport may still wait in Read for the client: the bytes it gets are kept for the
// next attempt.
type attemptBody struct {
	*keptBody
	sent *atomic.Bool // a part of the request may have been sent
	next int          // the first byte of kept that was not read; guarded by mu
}

// begin returns the body for the next attempt.
func (b *keptBody) begin(sent *atomic.Bool) *attemptBody {
	next := &attemptBody{keptBody: b, sent: sent}
	b.present.Store(next)
	return next
}

// whole returns the request with all of its body, although attempts may have read a part
// of it.
func (b *keptBody) whole(req *http.Request) *http.Request {
	if b == nil || b.present.Load() == nil {
		return req
	}
	req = req.WithContext(req.Context())
	var sent atomic.Bool
	sent.Store(true) // no attempt follows
	req.Body = b.begin(&sent)
	return req
}

func (b *attemptBody) isOver() bool { return b.present.Load() != b }

var errAttemptOver = errors.New("the request is sent to another leader")

func (b *attemptBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOver() {
		return 0, errAttemptOver
	}
	if b.next < len(b.kept) {
		n := copy(p, b.kept[b.next:])
		b.next += n
		return n, nil
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	switch over := b.isOver(); {
	case !over && (b.sent.Load() || b.lost.Load()):
		b.kept, b.next = nil, 0
		b.lost.Store(b.lost.Load() || n > 0)
	case !over && len(b.kept)+n > maxKept:
		b.lost.Store(true)
	default:
		b.kept = append(b.kept, p[:n]...)
		b.next = len(b.kept)
	}
	return n, err
}

func (b *attemptBody) Close() error { return nil }
