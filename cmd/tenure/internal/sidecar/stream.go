package sidecar

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// The bounds on streams of events.
const (
	maxStreams    = 1024             // at a time
	eachStreams   = 256              // of them from one address
	recheck       = 5 * time.Second  // between looks at whether the client still may
	pulseInterval = 15 * time.Second // between signs of life when nothing happens
	stallTimeout  = 30 * time.Second // for a client to take something
	retryDelay    = time.Second      // for a client to wait before it comes back
)

// The kinds of events in a stream.
const (
	kindHello    = "hello"    // the stream has begun
	kindGap      = "gap"      // events were missed
	kindElection = "election" // an event of an election of this node
	kindLeader   = "leader"   // another leads a role, anywhere
	kindJoined   = "joined"   // a node came
	kindUpdated  = "updated"  // a node tells something else of itself
	kindLeft     = "left"     // a node went or died
	kindDropped  = "dropped"  // the last: the client is too slow
	kindEnd      = "end"      // the last: the node stops
)

// helloRecord says where the stream begins.
type helloRecord struct {
	Position string `json:"position"` // the id to resume from
	Version  string `json:"version"`
}

// gapRecord says that events were missed.
type gapRecord struct {
	Missed  *uint64 `json:"missed"` // null if it is not known
	Message string  `json:"message"`
}

// lastRecord says why a stream ends.
type lastRecord struct {
	Message string `json:"message"`
}

// streaming streams what a feed tells until the client goes, is too slow, or the
// node stops.
func (h *Handler) streaming(feed *feed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h.events(w, r, feed) }
}

func (h *Handler) events(w http.ResponseWriter, r *http.Request, feed *feed) {
	var last *position
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		p, err := parsePosition(text)
		if err != nil {
			refuse(w, http.StatusBadRequest, codeInvalidID, err.Error())
			return
		}
		last = &p
	}
	release, ok := h.streams.Take(h.config.Proxies.Client(r))
	if !ok {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, codeTooMany, "too many clients follow the events, in all or from this address; try again later")
		return
	}
	defer release()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for reverse proxies
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	s := stream{out: w, control: http.NewResponseController(w), stall: h.stall, recheck: h.recheck, may: func() bool { return h.may(r) }}
	// The bounds on a request are not meant for a stream. Where they cannot be
	// lifted the stream ends early, and the client resumes it.
	_ = s.control.SetReadDeadline(time.Time{})
	s.follow(r, feed, last, h.config.Version)
}

// stream writes server-sent events to one client.
type stream struct {
	out     io.Writer
	control *http.ResponseController
	stall   time.Duration
	recheck time.Duration
	may     func() bool // the client may still follow: a token can be revoked
}

// follow writes the events that follow a position, or, without one, those to
// come.
func (s stream) follow(r *http.Request, feed *feed, last *position, version string) {
	begin := feed.join(last)
	opening := greeting(begin, version)
	if !s.write(opening...) {
		return
	}
	pulse := time.NewTicker(pulseInterval)
	defer pulse.Stop()
	look := time.NewTicker(s.recheck)
	defer look.Stop()
	for number, looked := begin.at.number, time.Now(); ; {
		if time.Since(looked) >= s.recheck {
			if looked = time.Now(); !s.may() {
				s.write(frame("", kindEnd, lastRecord{"the access was revoked"}))
				return
			}
		}
		next := feed.after(number)
		number = next.through
		switch {
		case next.behind:
			s.write(frame("", kindDropped, lastRecord{"too slow: events that were not read yet had to make room; resume for what is left of them"}))
			return
		case next.ended:
			s.write(frame("", kindEnd, lastRecord{"the node stops"}))
			return
		case len(next.frames) > 0:
			if !s.write(next.frames...) {
				return
			}
			pulse.Reset(pulseInterval)
			continue
		}
		select {
		case <-next.changed:
		case <-look.C:
		case <-pulse.C:
			if !s.write([]byte(": alive\n\n")) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// greeting is what a stream begins with.
func greeting(begin start, version string) [][]byte {
	id := begin.at.String()
	frames := [][]byte{
		fmt.Appendf(nil, "retry: %d\n", retryDelay.Milliseconds()),
		frame(id, kindHello, helloRecord{Position: id, Version: version}),
	}
	if begin.gap {
		message := "events were missed: too many have happened since"
		if begin.missed == nil {
			message = "events were missed: the id is not of this process; the node was started again, or it is another one"
		}
		frames = append(frames, frame(id, kindGap, gapRecord{begin.missed, message}))
	}
	return frames
}

// write writes frames and reports whether the client still takes them.
func (s stream) write(frames ...[]byte) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.stall)) // or the server's own
	for _, frame := range frames {
		if _, err := s.out.Write(frame); err != nil {
			return false
		}
	}
	return s.control.Flush() == nil
}

// frame encodes an event that belongs to one client only.
func frame(id, kind string, event any) []byte {
	data, err := json.Marshal(event)
	if err != nil {
		panic(err) // these records are texts and numbers
	}
	return encodeFrame(id, kind, data)
}
