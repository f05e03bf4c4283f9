package lead

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
)

// A command is killed 100 ms before trust ends, or a twentieth of a lease under 2 s. It has
// 1 s to end when asked to, or less with a short lease.
func TestCommandIsKilledATwentiethOfAShortLeaseBeforeTrustEnds(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]Timing{
		10 * time.Second:       {Lead: 100 * time.Millisecond, Grace: time.Second, Refresh: 10 * time.Second / 3},
		2 * time.Second:        {Lead: 100 * time.Millisecond, Grace: 466_666_668, Refresh: 2 * time.Second / 3},
		time.Second:            {Lead: 50 * time.Millisecond, Grace: 233_333_334, Refresh: time.Second / 3},
		400 * time.Millisecond: {Lead: 20 * time.Millisecond, Grace: 93_333_334, Refresh: 400 * time.Millisecond / 3},
	} {
		var flags CommandFlags
		flags.Register(pflag.NewFlagSet("run", pflag.ContinueOnError))
		got, err := flags.Timing(tenure.Config{Lease: lease})
		if err != nil || got.Lead != want.Lead {
			t.Errorf("with a lease of %v, a command is killed %v before trust ends (%v), want %v", lease, got.Lead, err, want.Lead)
		}
		if got != want {
			t.Errorf("with a lease of %v: %+v, want %+v", lease, got, want)
		}
	}
}
