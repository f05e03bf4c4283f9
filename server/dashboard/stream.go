package dashboard

import (
	"cmp"
	"net/http"
	"time"

	"github.com/exactly-one/tenure/internal/feed"
)

// The bounds on streams.
const (
	maxStreams      = 512              // at a time
	eachStreams     = 128              // of them from one address
	pulseInterval   = 5 * time.Second  // between keep-alive messages; the page waits for more than two
	recheckInterval = 10 * time.Second // between checks whether the viewer may still look
	stallTimeout    = 15 * time.Second // for a viewer to receive something
	retryDelay      = 500 * time.Millisecond

	maxRetainedBytes = 2 << 20 // of the changes kept for viewers that reconnect
)

// The events of a stream.
const (
	kindHello     = "hello"  // the stream has begun here
	kindResync    = "resync" // changes were missed: read everything again
	kindChange    = "change" // roles and events, without a gap
	kindNow       = "now"    // the state of the cluster and its nodes
	kindWork      = "work"   // processors and schedules
	kindAlerts    = "alerts"
	kindIncidents = "incidents" // the open ones and the last ones
	kindPulse     = "pulse"
	kindEnd       = "end" // the dashboard closes, or the viewer is too slow
)

// newFeed returns the feed for viewers. Of each state only the newest is sent, in this
// order.
func newFeed() *feed.Feed {
	return feed.New(maxRetainedBytes, kindIncidents, kindNow, kindWork, kindAlerts)
}

// stream streams the feed until the viewer leaves, is too slow, or the dashboard closes.
// A reconnecting viewer names the last change it received, in the header sent by browsers
// or in the query.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request) {
	release, ok := d.streams.Take(d.guard.addressOf(r))
	if !ok {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too many viewers of this dashboard; try again later")
		return
	}
	defer release()
	begin, err := d.feed.Join(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	missed := begin.Gap || err != nil
	if missed {
		begin.At = d.feed.Latest() // after reading everything again
	}
	id := begin.At.String()
	opening := [][]byte{feed.Frame(id, kindHello, struct{}{})}
	if missed {
		opening = append(opening, feed.Frame(id, kindResync, struct{}{}))
	}
	feed.Stream{
		Retry: retryDelay, Pulse: pulseInterval, Stall: stallTimeout, Recheck: recheckInterval,
		MayRead: func(r *http.Request) bool { return d.guard.mayLook(d.guard.identify(r)) },
		Alive:   feed.Frame("", kindPulse, struct{}{}),
		TooSlow: feed.Frame("", kindEnd, endRecord{"too slow"}),
		Closed:  feed.Frame("", kindEnd, endRecord{"the dashboard closes"}),
	}.Serve(w, r, d.feed, begin.At, opening...)
}

// endRecord is why a stream ends.
type endRecord struct {
	Reason string `json:"reason"`
}
