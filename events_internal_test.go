package tenure

import (
	"testing"

	"github.com/exactly-one/tenure/clocks"
)

func TestEventsAreDeliveredWhenTheNodeIsUnlocked(t *testing.T) {
	n := &Node{clock: clocks.System(), counters: newCounters()}
	delivered := make(chan EventKind, 2)
	for range 2 * fewEvents {
		e := &Election{node: n}
		e.OnEvent(func(event Event) { delivered <- event.Kind })
		n.mu.Lock()
		e.postLocked(Event{Kind: EventAcquired})
		if event, found := e.events.take(); found {
			t.Fatalf("%s can be delivered while the node is locked", event.event.Kind)
		}
		e.postLocked(Event{Kind: EventLost})
		n.mu.Unlock()
		for _, want := range []EventKind{EventAcquired, EventLost} {
			if got := <-delivered; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	n.group.Wait()
}

func TestEventsOfManyElectionsAreDelivered(t *testing.T) {
	n := &Node{clock: clocks.System(), counters: newCounters()}
	delivered := make(chan Role, 10*fewEvents)
	n.mu.Lock()
	for range 10 * fewEvents {
		e := &Election{node: n}
		e.OnEvent(func(event Event) { delivered <- event.Role })
		e.postLocked(Event{Kind: EventAcquired})
	}
	n.mu.Unlock()
	n.group.Wait()
	if len(delivered) != 10*fewEvents {
		t.Errorf("%d events were delivered; want %d", len(delivered), 10*fewEvents)
	}
}
