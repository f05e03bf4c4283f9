package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// besideLine is what a candidate of another system prints: when it looked, on
// CLOCK_MONOTONIC, and whether it led.
type besideLine struct {
	at     time.Duration
	leader bool
}

// maxBesideLine bounds a line, in bytes.
const maxBesideLine = 4096

// parseBesideLine reads a line. Fields that it does not know are left to the program.
func parseBesideLine(line []byte) (besideLine, error) {
	var fields struct {
		At     *int64 `json:"t_mono_ns"`
		Leader *bool  `json:"leader"`
	}
	const want = `{"t_mono_ns":1,"leader":true}`
	if err := json.Unmarshal(line, &fields); err != nil {
		return besideLine{}, fmt.Errorf("printed %.80q, want lines such as %s", line, want)
	}
	if fields.At == nil || fields.Leader == nil || *fields.At <= 0 {
		return besideLine{}, fmt.Errorf("printed %.80q, which lacks a field of %s", line, want)
	}
	return besideLine{time.Duration(*fields.At), *fields.Leader}, nil
}

// span is a stretch of time on CLOCK_MONOTONIC.
type span struct{ from, to time.Duration }

// leadership follows the lines of one candidate.
type leadership struct {
	started    time.Duration // of the process
	last       besideLine
	hasPrinted bool
	leads      []span        // that have ended
	since      time.Duration // of the present one
	paused     time.Duration // when the process was stopped; 0 once it has looked again
	resumed    time.Duration // when it was continued; 0 until then
}

// mostChanges bounds the changes of one candidate.
const mostChanges = 100_000

// clockSlack is how far a line's time may be off before it is taken for another clock's.
const clockSlack = time.Second

// add adds a line that was read at a time.
func (l *leadership) add(line besideLine, now time.Duration) error {
	switch {
	case line.at > now+clockSlack || line.at < l.started-clockSlack:
		return errors.New("printed a t_mono_ns that is no reading of CLOCK_MONOTONIC since it started")
	case line.at < l.last.at:
		return errors.New("printed a t_mono_ns before that of its last line")
	case len(l.leads) == mostChanges:
		return errors.New("changed its state too often")
	}
	switch {
	case l.paused == 0:
	case l.resumed == 0 || line.at < l.resumed:
		l.paused = max(l.paused, line.at) // the signal was on its way
	default:
		l.end(l.paused) // it claimed nothing while it was stopped
		l.paused, l.resumed = 0, 0
	}
	switch {
	case line.leader && !l.last.leader:
		l.since = line.at
	case !line.leader && l.last.leader:
		l.end(line.at)
	}
	l.last, l.hasPrinted = line, true
	return nil
}

// end ends the present leadership.
func (l *leadership) end(at time.Duration) {
	if l.last.leader {
		l.leads = append(l.leads, l.present(at))
		l.last.leader = false
	}
}

// until returns when the candidate led, up to a time.
func (l *leadership) until(now time.Duration) []span {
	all := l.leads[:len(l.leads):len(l.leads)]
	if l.last.leader {
		all = append(all, l.present(now))
	}
	return all
}

// present is the present leadership, up to a time or until the process was stopped.
func (l *leadership) present(until time.Duration) span {
	if l.paused != 0 {
		until = min(until, l.paused)
	}
	return span{l.since, max(l.since, until)}
}

// longestOverlap returns the longest time in which two candidates led.
func longestOverlap(all [][]span) time.Duration {
	var longest time.Duration
	for i, one := range all {
		for _, other := range all[i+1:] {
			for _, a := range one {
				for _, b := range other {
					longest = max(longest, min(a.to, b.to)-max(a.from, b.from))
				}
			}
		}
	}
	return longest
}
