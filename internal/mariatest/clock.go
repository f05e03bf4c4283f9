package mariatest

import (
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgserver"
)

// Clock is the wall clock of a server, which a test sets while the server runs.
type Clock struct{ fake *pgserver.FakeClock }

// StartWithClock starts a server for this test alone, and returns its clock, which
// shows the machine's time until it is set. The test is skipped where libfaketime is
// not installed.
func StartWithClock(t testing.TB, options Options) (*Server, *Clock) {
	t.Helper()
	fake, err := pgserver.FindFakeClock("") // where the account of the server can read it
	if err != nil {
		t.Fatal(err)
	}
	if fake == nil {
		t.Skip("there is no libfaketime")
	}
	t.Cleanup(func() {
		if err := fake.Close(); err != nil {
			t.Error(err)
		}
	})
	options.Environment = append(fake.Environment(), options.Environment...)
	return Start(t, options), &Clock{fake}
}

// Set makes the server's clock differ from the machine's, and returns when the server
// shows that.
func (c *Clock) Set(t testing.TB, offset time.Duration) {
	t.Helper()
	if err := c.fake.Set(offset); err != nil {
		t.Fatal(err)
	}
	<-time.After(pgserver.FakeClockDelay) // the server reads the file no earlier than its cache says
}
