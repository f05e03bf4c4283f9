package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// event is a line of tenure demo -o json.
type event struct {
	Time            time.Time `json:"time"`
	Event           string    `json:"event"` // elected, killed or summary
	NodeName        string    `json:"node_name"`
	Term            int64     `json:"term"`
	Replaced        string    `json:"replaced"`
	FailoverSeconds float64   `json:"failover_seconds"`
	Failovers       int       `json:"failovers"` // only summary, as the fields below
	MedianSeconds   float64   `json:"median_seconds"`
	FastestSeconds  float64   `json:"fastest_seconds"`
	SlowestSeconds  float64   `json:"slowest_seconds"`
}

// readEvents reads a whole run. It has a summary at the end and at least one failover.
func readEvents(r io.Reader) ([]event, error) {
	var events []event
	lines := json.NewDecoder(r)
	for {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if !slices.Contains([]string{"elected", "killed", "summary"}, e.Event) {
			return nil, fmt.Errorf("unknown event %q", e.Event)
		}
		events = append(events, e)
	}
	if n := len(events); n < 2 || events[0].Event != "elected" || events[n-1].Event != "summary" || events[n-1].Failovers == 0 {
		return nil, errors.New("the run is not complete: it begins with a leader and ends with a summary of failovers")
	}
	return events, nil
}

// bar is the time in which a node led.
type bar struct {
	node     string
	from, to time.Duration // since the first event
	killed   bool
	takeover float64 // seconds since the previous leader was killed; 0 for the first
}

// bars returns the terms of a run in order.
func bars(events []event) []bar {
	began, ended := events[0].Time, events[len(events)-1].Time
	var found []bar
	for _, e := range events {
		at := e.Time.Sub(began)
		switch e.Event {
		case "elected":
			found = append(found, bar{node: e.NodeName, from: at, to: ended.Sub(began) + rest, takeover: e.FailoverSeconds})
		case "killed":
			last := &found[len(found)-1]
			last.to, last.killed = at, true
		}
	}
	return found
}

// text describes an event as tenure demo prints it.
func (e event) text() string {
	switch {
	case e.Event == "killed":
		return e.NodeName + " is killed"
	case e.Event == "summary":
		return fmt.Sprintf("%d failovers: median %s, fastest %s, slowest %s", e.Failovers,
			milliseconds(e.MedianSeconds), milliseconds(e.FastestSeconds), milliseconds(e.SlowestSeconds))
	case e.Replaced != "":
		return fmt.Sprintf("%s leads, %s after %s was killed", e.NodeName, milliseconds(e.FailoverSeconds), e.Replaced)
	default:
		return e.NodeName + " leads"
	}
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.1f ms", 1000*seconds) }
