package dashboard

import (
	"encoding/json"
	"sync"
	"time"
)

// The intervals of reads without a notification.
const (
	nodesInterval = 2 * time.Second        // the registry: one statement
	leastInterval = 500 * time.Millisecond // the same, if leases are short
	allInterval   = 5 * time.Second        // everything that may have changed
	wholeInterval = 5 * time.Minute        // the last term of each role: one may be gone
	lookTimeout   = 5 * time.Second
	// overlap is how far back each read reads again: a late commit has an earlier time.
	overlap = time.Minute
)

// watcher is the state of the watch between two reads.
type watcher struct {
	*Dashboard
	allAt        time.Time // when everything was read last
	wholeAt      time.Time // when the last term of each role was
	workAt       time.Time
	workTook     time.Duration // to read processors and schedules
	readFrom     time.Time     // terms and nodes are read from this time on, by the database's clock
	rewound      bool          // readFrom is earlier than it was
	work         string        // as published last
	alerts       string
	told         string // incidents, as published last
	incidents    regrouper
	outagesUntil time.Time         // outages are read until then
	outagesAt    time.Time         // when they were
	blockedAt    time.Time         // when the blockers of vacant roles were read
	retention    []retentionRecord // as read last
	retentionAt  time.Time         // when it was
	failed       bool              // to read processors and schedules, the last time

	calls sync.WaitGroup    // of Config.Alerts
	late  chan alertsResult // of a call that was not waited for

	publishFailed bool // a state could not be published, the last time
}

// regrouper limits how often incidents are found: the more changes there are, the
// longer it takes.
type regrouper struct {
	next time.Time
}

// alertsResult is the result of a call of Config.Alerts.
type alertsResult struct {
	alerts []Alert
	err    error
}

// notify makes the watch read immediately.
func (d *Dashboard) notify() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// publish sends a change to all viewers. If the change cannot be encoded, they read
// everything again.
func (d *Dashboard) publish(change changeRecord) {
	if err := d.feed.Publish(kindChange, change); err != nil {
		d.log.Warn("a change cannot be published", "error", err)
		_ = d.feed.Publish(kindChange, readAgain) // it can always be encoded
	}
}

// publishState sends a state to all viewers.
func (w *watcher) publishState(kind string, now any) {
	err := w.feed.SetState(kind, now)
	if err != nil && !w.publishFailed {
		w.log.Warn("a state cannot be published", "kind", kind, "error", err)
	}
	w.publishFailed = err != nil
}

// publishIfChanged publishes a state unless it equals the last published one.
func (w *watcher) publishIfChanged(kind string, last *string, now any) {
	text, err := json.Marshal(now)
	if err == nil && string(text) == *last {
		return
	}
	*last = string(text)
	w.publishState(kind, now)
}
