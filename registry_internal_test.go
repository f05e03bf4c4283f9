package tenure

import (
	"testing"

	"github.com/exactly-one/tenure/clocks"
)

// The session may end after serve has chosen a call and before it runs it: then
// the call has failed and is no longer queued.
func TestRunCallSkipsFailedCall(t *testing.T) {
	t.Parallel()
	s := newSession(&Node{cfg: Config{}.withDefaults(), clock: clocks.System()})
	if err := s.runCall(); err != nil {
		t.Error(err)
	}
}
