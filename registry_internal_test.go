package tenure

import "testing"

// The session may end after serve has chosen a call and before it runs it: then
// the call has failed and is no longer queued.
func TestRunCallAfterSessionEnd(t *testing.T) {
	t.Parallel()
	s := newSession(&Node{cfg: Config{}.withDefaults(), clock: SystemClock()})
	if err := s.runCall(); err != nil {
		t.Error(err)
	}
}
