package feed

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// Stream is how an endpoint streams a feed.
type Stream struct {
	Retry   time.Duration // for a client to wait before it comes back
	Pulse   time.Duration // between signs of life when nothing happens
	Stall   time.Duration // for a client to take something
	Recheck time.Duration // between calls of MayRead
	// MayRead reports whether a client may still read: a token can be revoked.
	MayRead func(*http.Request) bool

	Alive []byte // the sign of life
	// The last frame of a stream, by the reason of its end; nil for none.
	TooSlow, Closed, Revoked []byte
}

// Serve streams the feed from a place until the client leaves, is too slow or may not read
// any longer, or the feed is closed. The stream begins with the frames of opening. Answer
// a refused request before the call.
func (s Stream) Serve(w http.ResponseWriter, r *http.Request, f *Feed, at Position, opening ...[]byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for reverse proxies
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	to := writer{w, http.NewResponseController(w), s.Stall}
	// The limits of a request are not meant for a stream. Where they cannot be
	// lifted the stream ends early, and the client resumes it.
	_ = to.control.SetReadDeadline(time.Time{})
	retry := fmt.Appendf(nil, "retry: %d\n", s.Retry.Milliseconds())
	if !to.write(append([][]byte{retry}, opening...)...) {
		return
	}
	if last := s.follow(to, r, f, at); last != nil {
		to.write(last)
	}
}

// follow writes the stream after a position, and returns its last frame.
func (s Stream) follow(to writer, r *http.Request, f *Feed, at Position) (last []byte) {
	pulse, recheck := time.NewTicker(s.Pulse), time.NewTicker(s.Recheck)
	defer pulse.Stop()
	defer recheck.Stop()
	checked := time.Now()
	for seen := (place{event: at.number}); ; {
		if time.Since(checked) >= s.Recheck {
			if checked = time.Now(); !s.MayRead(r) {
				return s.Revoked
			}
		}
		next := f.after(seen)
		seen = next.through
		switch {
		case next.behind:
			return s.TooSlow
		case next.ended:
			return s.Closed
		case len(next.frames) > 0:
			if !to.write(next.frames...) {
				return nil
			}
			pulse.Reset(s.Pulse)
			continue
		}
		select {
		case <-next.changed:
		case <-recheck.C:
		case <-pulse.C:
			if !to.write(s.Alive) {
				return nil
			}
		case <-r.Context().Done():
			return nil
		}
	}
}

// writer writes to one client.
type writer struct {
	out     io.Writer
	control *http.ResponseController
	stall   time.Duration
}

// write writes frames and reports whether the client still takes them.
func (w writer) write(frames ...[]byte) bool {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) // or the server's own
	for _, frame := range frames {
		if _, err := w.out.Write(frame); err != nil {
			return false
		}
	}
	return w.control.Flush() == nil
}
