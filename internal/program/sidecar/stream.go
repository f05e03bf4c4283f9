package sidecar

import (
	"net/http"
	"time"

	"github.com/exactly-one/tenure/internal/feed"
)

// The bounds on streams of events.
const (
	maxStreams    = 1024             // at a time
	eachStreams   = 256              // of them from one address
	recheck       = 5 * time.Second  // between looks at whether the client still may
	pulseInterval = 15 * time.Second // between signs of life when nothing happens
	stallTimeout  = 30 * time.Second // for a client to take something
	retryDelay    = time.Second      // for a client to wait before it comes back

	maxRetainedBytes = 1 << 20 // of the events kept for clients that resume
)

// The kinds of events in a stream.
const (
	kindHello    = "hello"    // the stream has begun
	kindGap      = "gap"      // events were missed
	kindElection = "election" // an event of an election of this node
	kindLeader   = "leader"   // another leads a role, anywhere
	kindJoined   = "joined"   // a node came
	kindUpdated  = "updated"  // a node changed its description
	kindLeft     = "left"     // a node went or died
	kindDropped  = "dropped"  // the last: the client is too slow
	kindEnd      = "end"      // the last: the node stops
)

// helloRecord says where the stream begins.
type helloRecord struct {
	Position string `json:"position"` // the id to resume from
	Version  string `json:"version"`
}

// gapRecord reports missed events.
type gapRecord struct {
	Missed  *uint64 `json:"missed"` // null if it is not known
	Message string  `json:"message"`
}

// lastRecord says why a stream ends.
type lastRecord struct {
	Message string `json:"message"`
}

// newFeed returns a feed of events for clients that resume.
func newFeed() *feed.Feed { return feed.New(maxRetainedBytes) }

// streaming streams a feed until the client leaves, is too slow, or the node stops.
func (h *Handler) streaming(from *feed.Feed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begin, err := from.Join(r.Header.Get("Last-Event-ID"))
		if err != nil {
			refuse(w, http.StatusBadRequest, codeInvalidID, err.Error())
			return
		}
		release, ok := h.streams.Take(h.config.Proxies.Client(r))
		if !ok {
			w.Header().Set("Retry-After", "5")
			refuse(w, http.StatusServiceUnavailable, codeTooMany, "too many clients follow the events, in all or from this address; try again later")
			return
		}
		defer release()
		feed.Stream{
			Retry: retryDelay, Pulse: pulseInterval, Stall: h.stall, Recheck: h.recheck, MayRead: h.may,
			Alive:   []byte(": alive\n\n"),
			TooSlow: feed.Frame("", kindDropped, lastRecord{"too slow: events that were not read yet had to make room; resume for what is left of them"}),
			Closed:  feed.Frame("", kindEnd, lastRecord{"the node stops"}),
			Revoked: feed.Frame("", kindEnd, lastRecord{"the access was revoked"}),
		}.Serve(w, r, from, begin.At, greeting(begin, h.config.Version)...)
	}
}

// greeting is the beginning of a stream.
func greeting(begin feed.Start, version string) [][]byte {
	id := begin.At.String()
	frames := [][]byte{feed.Frame(id, kindHello, helloRecord{Position: id, Version: version})}
	if begin.Gap {
		message := "events were missed: too many have happened since"
		if begin.Missed == nil {
			message = "events were missed: the id is not of this process; the node was started again, or it is another one"
		}
		frames = append(frames, feed.Frame(id, kindGap, gapRecord{begin.Missed, message}))
	}
	return frames
}

// may reports whether a client may still read the stream it has asked for.
func (h *Handler) may(r *http.Request) (may bool) {
	if h.config.Protect == nil {
		return true
	}
	allowed := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { may = true })
	h.config.Protect(allowed).ServeHTTP(&nowhere{header: http.Header{}}, r)
	return may
}

// nowhere discards an answer.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header              { return n.header }
func (n *nowhere) Write(answer []byte) (int, error) { return len(answer), nil }
func (n *nowhere) WriteHeader(int)                  {}
