package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/processor"
)

// How long an action may take, and how long to wait for its outcome: work in flight
// ends first.
const (
	actionTimeout  = 10 * time.Second
	outcomeTimeout = 15 * time.Second
)

// rebalanced is the result of a request to rebalance.
type rebalanced struct {
	sharing int  // nodes that share roles
	planned int  // roles to move
	late    bool // some have not moved yet
}

// pendingAction is an action before its outcome is known.
type pendingAction struct {
	actionBody

	before  uint64    // the last event before it
	asked   time.Time // when it was requested, by the database's clock
	run     int64     // the requested run of a schedule
	letters int       // how many dead letters are replayed or dismissed

	rebalanced rebalanced
}

// await waits until the snapshot shows the outcome of an action. It does not use the
// database.
func (d *Dashboard) await(ctx context.Context, what pendingAction) outcome {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	for {
		message, done, changed := d.snapshot.outcomeOf(what)
		if done {
			return outcome{Done: true, Failed: d.snapshot.runFailed(what), Message: message}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return outcome{Message: message}
		}
	}
}

// outcomeOf returns the effect of an action in the snapshot, and whether it is final.
func (p *snapshot) outcomeOf(what pendingAction) (message string, done bool, changed <-chan struct{}) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	switch what.Action {
	case stepDown, handOver:
		message, done = p.succession(what)
	case drain, undrain:
		message, done = p.drained(what)
	case triggerSchedule:
		message, done = p.ran(what)
	case retryProcessor:
		message, done = quoted(what.Name)+" tries again now.", true
	case skipEvent:
		message, done = fmt.Sprintf("Event %s is skipped. It is a dead letter now.", what.Event), true
	case rewindProcessor:
		message, done = fmt.Sprintf("%s continues after %s.", quoted(what.Name), position(what.Event)), true
	case rebalanceRoles:
		message, done = what.rebalanced.String(), true
	case forgetNode:
		message, done = "The node is forgotten.", true
	case unsilenceAlert:
		message, done = quoted(what.Name)+" is no longer silenced.", true
	case replayLetters:
		message, done = replayed(what.letters), true
	case dismissLetters:
		message, done = count(what.letters, "dead letter is", "dead letters are")+" dismissed.", true
	case silenceAlert:
		message, done = quoted(what.Name)+" is silenced.", true
	case acknowledgeAlert:
		message, done = quoted(what.Name)+" is acknowledged.", true
	case pauseProcessor, pauseSchedule:
		message, done = quoted(what.Name)+" is paused.", true
	default:
		message, done = quoted(what.Name)+" is resumed.", true
	}
	return message, done, p.changed
}

// succession returns the state of a role after its leader was asked to step down.
func (p *snapshot) succession(what pendingAction) (message string, done bool) {
	var over *eventRecord
	for _, e := range p.since(what.before) {
		switch {
		case e.Role != what.Name:
		case e.Kind == eventEnded:
			over = &e
		case e.Kind == eventBegan && what.Action == handOver && e.Node != what.Node:
			return fmt.Sprintf("%s leads now, in term %d%s: the target did not acquire it.", quoted(e.NodeName), e.Term, what.after(e)), true
		case e.Kind == eventBegan && over != nil && over.Node == e.Node:
			return fmt.Sprintf("%s leads again, in term %d%s: no other node acquired it.", quoted(e.NodeName), e.Term, what.after(e)), true
		case e.Kind == eventBegan:
			return fmt.Sprintf("%s leads now, in term %d%s.", quoted(e.NodeName), e.Term, what.after(e)), true
		}
	}
	if over != nil {
		return fmt.Sprintf("%s has stepped down, and no node leads it yet.", quoted(over.NodeName)), false
	}
	return "The leader has the request. It steps down when its in-flight work has ended.", false
}

// after states how long it took until a term began, and for how long the role had no
// leader.
func (a pendingAction) after(began eventRecord) string {
	if a.asked.IsZero() {
		return ""
	}
	text := ", after " + printable.Duration(max(0, began.At.Sub(a.asked)))
	if began.Without != nil {
		text += fmt.Sprintf(" (without a leader %s)", printable.Duration(time.Duration(*began.Without*float64(time.Second))))
	}
	return text
}

// drained returns the progress of a node after a request to drain or undrain.
func (p *snapshot) drained(what pendingAction) (message string, done bool) {
	m, ok := p.member(what.Node)
	switch {
	case !ok || p.nodeState(m) == dead:
		return "The node is gone.", true
	case what.Action == undrain && m.Status == tenure.StatusActive:
		return quoted(m.Name) + " is active again.", true
	case what.Action == undrain:
		return quoted(m.Name) + " was asked to come back into service.", false
	case m.Drained:
		return quoted(m.Name) + " is drained: it leads nothing and takes no work.", true
	default:
		return quoted(m.Name) + " was asked to drain. It stops accepting work and finishes what it has.", m.Status == tenure.StatusDraining
	}
}

// ran returns the outcome of a requested run.
func (p *snapshot) ran(what pendingAction) (message string, done bool) {
	i := slices.IndexFunc(p.work.Schedules, func(s scheduleRecord) bool { return s.Name == what.Name })
	if i < 0 {
		return quoted(what.Name) + " was asked to run.", false
	}
	s := p.work.Schedules[i]
	switch {
	case s.Last != nil && s.Last.Run == what.run && s.Last.State == cron.Running:
		return fmt.Sprintf("%s runs on %s.", quoted(s.Name), quoted(s.Last.NodeName)), false
	case s.Last != nil && s.Last.Run == what.run:
		result := fmt.Sprintf("%s has run on %s: %s", quoted(s.Name), quoted(s.Last.NodeName), strings.ReplaceAll(string(s.Last.State), "_", " "))
		return withError(result, s.Last.Error), true
	case s.Last != nil && s.Last.Run > what.run:
		return quoted(s.Name) + " was asked to run, and runs of it have begun since.", true
	case !s.Loaded:
		return quoted(s.Name) + " was asked to run. It waits: no leader has it at the moment.", true
	default:
		return quoted(s.Name) + " was asked to run; its leader has not begun yet.", false
	}
}

// runFailed reports whether a requested run has ended without success.
func (p *snapshot) runFailed(what pendingAction) bool {
	if what.Action != triggerSchedule {
		return false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.ContainsFunc(p.work.Schedules, func(s scheduleRecord) bool {
		return s.Name == what.Name && s.Last != nil && s.Last.Run == what.run && s.Last.State != cron.Succeeded
	})
}

// position names an event of the log, or its start.
func position(event string) string {
	if event == (processor.Cursor{}).String() {
		return "the start of the log"
	}
	return "event " + event
}

// replayed states how many dead letters are handled again.
func replayed(letters int) string {
	if letters == 0 {
		return "There is no dead letter to replay."
	}
	return fmt.Sprintf("The leader handles %s again.", count(letters, "dead letter", "dead letters"))
}

// since are the events after one.
func (p *snapshot) since(number uint64) []eventRecord {
	for i, e := range p.events {
		if e.Number > number {
			return p.events[i:]
		}
	}
	return nil
}

// eventsSeen is the number of the last event.
func (p *snapshot) eventsSeen() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.number
}

// nodeName returns the name of a node, if known.
func (p *snapshot) nodeName(id uuid.UUID) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	m, _ := p.member(id)
	return m.Name
}

// String describes the result in a sentence.
func (r rebalanced) String() string {
	switch {
	case r.sharing == 0:
		return "No node shares roles."
	case r.planned == 0:
		return "Every shared role is where it should be."
	case r.late:
		return fmt.Sprintf("Not all of %s have moved yet. Requested moves continue; rebalance again for the others.", count(r.planned, "role", "roles"))
	default:
		return count(r.planned, "role has", "roles have") + " moved."
	}
}
