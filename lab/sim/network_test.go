package sim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinksKeepOrder sends numbered messages while the path fails and heals: all
// arrive, in order, and none while the path is blocked.
func TestLinksKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld(7, Network{Least: time.Millisecond, Most: 50 * time.Millisecond})
		m := w.NewMachine()
		var arrived, want []int
		w.mu.Lock()
		l := m.sessionUp.connect(newStream(7, "link"))
		w.mu.Unlock()
		for i := range 300 {
			w.mu.Lock()
			switch i % 100 {
			case 20:
				m.sessionUp.block()
			case 60:
				m.sessionUp.heal()
			case 80:
				m.sessionUp.extra = 30 * time.Millisecond
			}
			l.send(func() {
				if m.sessionUp.blocked {
					t.Error("a message arrived over a blocked path")
				}
				arrived = append(arrived, i)
			})
			want = append(want, i)
			w.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		w.Close()
		if !slices.Equal(arrived, want) {
			t.Errorf("arrived: %v", arrived)
		}
	})
}

// TestClosedLinksDeliverNothing checks that nothing arrives over a connection that is closed.
func TestClosedLinksDeliverNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld(7, Network{Least: time.Millisecond, Most: 2 * time.Millisecond})
		m := w.NewMachine()
		w.mu.Lock()
		l := m.sessionUp.connect(newStream(7, "link"))
		l.send(func() { t.Error("a message arrived after the connection was closed") })
		l.close()
		l.send(func() { t.Error("a message was sent over a closed connection") })
		if len(m.sessionUp.links) != 0 {
			t.Error("the path keeps a closed link")
		}
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.Close()
	})
}
