package lead

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/retry"
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

// guardedConfig returns the configuration of a node that runs a command with these flags.
func guardedConfig(t *testing.T, args ...string) tenure.Config {
	t.Helper()
	cmd := &cobra.Command{Use: "run"}
	var flags Flags
	flags.Command.Register(cmd.Flags())
	flags.Register(cmd.Flags())
	if err := cmd.ParseFlags(append([]string{"--dsn", "postgres://127.0.0.1:1/db"}, args...)); err != nil {
		t.Fatal(err)
	}
	config, err := flags.GuardedConfig(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// After a term with a command ended uncleanly, the next one begins 200 ms later.
func TestNodeWithCommandSettlesFor200ms(t *testing.T) {
	t.Parallel()
	if got := guardedConfig(t).Settle; got != 200*time.Millisecond {
		t.Errorf("a node with a command settles for %v, want 200ms", got)
	}
	if got := guardedConfig(t, "--settle", "3s").Settle; got != 3*time.Second {
		t.Errorf("with --settle 3s, a node with a command settles for %v", got)
	}
}

// One of the two delays of the backoff sets the other one: the first is 1 s, and the longest
// is 30 s.
func TestOneDelayOfTheBackoffIsEnough(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]retry.ExponentialBackoff{
		"--retry-max=1m":   {Base: time.Second, Max: time.Minute},
		"--retry-max=10ms": {Base: 10 * time.Millisecond, Max: 10 * time.Millisecond},
		"--retry-base=5s":  {Base: 5 * time.Second, Max: 30 * time.Second},
		"--retry-base=1m":  {Base: time.Minute, Max: time.Minute},
	} {
		if got := guardedConfig(t, flag).Retry; got != want {
			t.Errorf("with %s the delays are %+v, want %+v", flag, got, want)
		}
	}
}

// A health command runs every 10 s, and may take 10 s or the time between two runs,
// whichever is shorter.
func TestHealthCommandMayTakeTenSeconds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args           []string
		every, timeout time.Duration
	}{
		{nil, 10 * time.Second, 10 * time.Second},
		{[]string{"--health-every", "3s"}, 3 * time.Second, 3 * time.Second},
		{[]string{"--health-every", "1m"}, time.Minute, 10 * time.Second},
	} {
		set := pflag.NewFlagSet("run", pflag.ContinueOnError)
		var flags CommandFlags
		flags.Register(set)
		if err := set.Parse(append([]string{"--health-command", "true"}, test.args...)); err != nil {
			t.Fatal(err)
		}
		got, err := flags.health.plan(set)
		if err != nil || got.Every != test.every || got.Timeout != test.timeout {
			t.Errorf("with %v, a health command may take %v and runs every %v (%v), want %v and %v",
				test.args, got.Timeout, got.Every, err, test.timeout, test.every)
		}
	}
	if UnhealthyAfter != 3 {
		t.Errorf("a command is unhealthy after %d failures in a row, want 3", UnhealthyAfter)
	}
}
