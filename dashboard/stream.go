package dashboard

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// The bounds on streams.
const (
	maxStreams    = 512              // at a time
	eachStreams   = 128              // of them from one address
	pulseInterval = 10 * time.Second // between signs of life
	stallTimeout  = 15 * time.Second // for a viewer to take something
	retryDelay    = 500 * time.Millisecond
)

// What a stream tells.
const (
	kindHello  = "hello"  // the stream has begun here
	kindResync = "resync" // changes were missed: read everything anew
	kindChange = "change" // roles and events, none of which is missed
	kindNow    = "now"    // the state of the cluster and its nodes
	kindWork   = "work"   // processors and schedules
	kindAlerts = "alerts"
	kindPulse  = "pulse"
	kindEnd    = "end" // the dashboard closes, or the viewer is too slow
)

// stateKinds are those of which only the newest matters, in the order in which
// they are told.
var stateKinds = []string{kindNow, kindWork, kindAlerts}

// stream follows the feed until the viewer goes, is too slow, or the dashboard
// closes. A viewer that comes back names the last change that it saw, as browsers
// do by themselves, or in the query.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request) {
	release, ok := d.streams.Take(d.guard.addressOf(r))
	if !ok {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too many people look at this dashboard; try again later")
		return
	}
	defer release()
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = r.URL.Query().Get("after")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for reverse proxies
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	s := stream{out: w, control: http.NewResponseController(w), mayLook: func() bool { return d.guard.mayLook(d.guard.identify(r)) }}
	// The server's bounds on a request are not meant for a stream. Where they
	// cannot be lifted it ends early, and the viewer comes back.
	_ = s.control.SetReadDeadline(time.Time{})
	s.follow(r, d.feed, last)
}

// stream writes events to one viewer.
type stream struct {
	out     io.Writer
	control *http.ResponseController
	mayLook func() bool // still: a session may have ended
}

func (s stream) follow(r *http.Request, feed *feed, last string) {
	at, missed := feed.join(last)
	opening := [][]byte{
		fmt.Appendf(nil, "retry: %d\n\n", retryDelay.Milliseconds()),
		frameOf(feed.id(at.change), kindHello, []byte("{}")),
	}
	if missed {
		opening = append(opening, frameOf(feed.id(at.change), kindResync, []byte("{}")))
	}
	if !s.write(opening...) {
		return
	}
	pulse := time.NewTicker(pulseInterval)
	defer pulse.Stop()
	for looked := time.Now(); ; {
		if time.Since(looked) >= pulseInterval {
			if looked = time.Now(); !s.mayLook() {
				return
			}
		}
		next := feed.after(at)
		at = next.through
		switch {
		case next.behind:
			s.write(frameOf("", kindEnd, []byte(`{"reason":"too slow"}`)))
			return
		case next.ended:
			s.write(frameOf("", kindEnd, []byte(`{"reason":"the dashboard closes"}`)))
			return
		case len(next.frames) > 0:
			if !s.write(next.frames...) {
				return
			}
			continue
		}
		select {
		case <-next.changed:
		case <-pulse.C:
			if !s.write(frameOf("", kindPulse, []byte("{}"))) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// write writes frames and reports whether the viewer still takes them.
func (s stream) write(frames ...[]byte) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // or the server's own
	for _, frame := range frames {
		if _, err := s.out.Write(frame); err != nil {
			return false
		}
	}
	return s.control.Flush() == nil
}
