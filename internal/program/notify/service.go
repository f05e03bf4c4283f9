package notify

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Health is how a program fares.
type Health struct {
	// Healthy keeps the watchdog away. The manager ends a program after a whole interval
	// of the watchdog without health.
	Healthy bool
	// Status is one line for people, as "systemctl status" shows it.
	Status string
}

// lookInterval is how often the program is asked how it fares; only changes are
// sent.
const lookInterval = time.Second

// Service keeps the manager informed until it is closed. Its methods may be called
// concurrently. On a nil Service they do nothing.
type Service struct {
	socket *Socket
	ask    func() Health
	failed func(error)

	leaving atomic.Bool
	once    sync.Once
	end     chan struct{} // closed by Close
	ended   sync.WaitGroup
}

// Start reports the program as ready, and from then on its state: each change of its
// status, and a sign of life twice in each interval of the watchdog while it is healthy.
// ask is called from one goroutine; while it hangs, no sign of life is sent. failed gets
// the error of each failed report. The service closes the socket; without a socket it is
// nil.
func Start(socket *Socket, ask func() Health, failed func(error)) *Service {
	if socket == nil {
		return nil
	}
	s := &Service{socket: socket, ask: ask, failed: failed, end: make(chan struct{})}
	health := ask()
	s.notify(ready, statusLine(health.Status))
	s.ended.Go(func() { s.report(health.Status) })
	return s
}

// Reload reports that the program reads its configuration again while fn does so.
func (s *Service) Reload(fn func()) {
	if s == nil {
		fn()
		return
	}
	s.notify(reloading)
	fn()
	s.notify(ready)
}

// Stopping reports the coming end of the program. From then on the watchdog is fed
// whatever the health: how long the end may take is the manager's own limit.
func (s *Service) Stopping() {
	if s == nil || s.leaving.Swap(true) {
		return
	}
	s.notify(stopping)
}

// Close ends the reports. It is idempotent.
func (s *Service) Close() error {
	if s == nil {
		return nil
	}
	s.once.Do(func() { close(s.end) })
	s.ended.Wait()
	return s.socket.Close()
}

// report sends changes of the status, and feeds the watchdog.
func (s *Service) report(reported string) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	var feed <-chan time.Time
	if s.socket.watchdog > 0 {
		// NewTicker needs a nanosecond at least.
		ticker := time.NewTicker(max(s.socket.watchdog/2, 1))
		defer ticker.Stop()
		feed = ticker.C
	}
	for {
		select {
		case <-s.end:
			return
		case <-look.C:
			if health := s.ask(); health.Status != reported {
				reported = health.Status
				s.notify(statusLine(reported))
			}
		case <-feed:
			if s.ask().Healthy || s.leaving.Load() {
				s.notify(watchdog)
			}
		}
	}
}

func (s *Service) notify(lines ...string) {
	if err := s.socket.send(lines...); err != nil {
		s.failed(err)
	}
}

// statusLine formats a status to send. A line break would begin another message.
func statusLine(text string) string {
	return status + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
