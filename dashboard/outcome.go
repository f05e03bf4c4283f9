package dashboard

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// await waits until the picture shows what came of an action. It asks no
// database.
func (d *Dashboard) await(ctx context.Context, body actionBody, before uint64) outcome {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	for {
		message, done, changed := d.picture.outcomeOf(body, before)
		if done {
			return outcome{true, message}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return outcome{false, message}
		}
	}
}

// outcomeOf says what can be seen of an action since an event, and whether that
// is all there is to see.
func (p *picture) outcomeOf(body actionBody, before uint64) (message string, done bool, changed <-chan struct{}) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	changed = p.news
	switch body.Action {
	case stepDown, handOver:
		for _, e := range p.since(before) {
			if e.Role == body.Name && e.Kind == eventBegan {
				return fmt.Sprintf("%s leads now, in term %d.", quoted(e.NodeName), e.Term), true, changed
			}
		}
		return "The leader was asked. It gives the role up when its work has ended.", false, changed
	case drain:
		m, ok := p.member(body.Node)
		switch {
		case !ok:
			return "The node is gone.", true, changed
		case m.Drained:
			return quoted(m.Name) + " is drained: it leads nothing and takes no work.", true, changed
		default:
			return quoted(m.Name) + " was asked to drain. It takes no more work and ends what it has.", m.Status == tenure.StatusDraining, changed
		}
	case undrain:
		m, ok := p.member(body.Node)
		if ok && m.Status == tenure.StatusActive {
			return quoted(m.Name) + " is in service again.", true, changed
		}
		return "The node was asked to come back into service.", !ok, changed
	case triggerSchedule:
		return quoted(body.Name) + " was asked to run; its leader starts it at once.", true, changed
	case pauseProcessor, pauseSchedule:
		return quoted(body.Name) + " is paused.", true, changed
	default:
		return quoted(body.Name) + " goes on.", true, changed
	}
}

// since are the events after one.
func (p *picture) since(number uint64) []eventRecord {
	for i, e := range p.events {
		if e.Number > number {
			return p.events[i:]
		}
	}
	return nil
}

// eventsSeen is the number of the last event.
func (p *picture) eventsSeen() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.number
}

// nodeName is what a node calls itself, if it is known.
func (p *picture) nodeName(id uuid.UUID) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	m, _ := p.member(id)
	return m.Name
}
