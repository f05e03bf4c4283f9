package lead

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/exactly-one/tenure"
)

// plan returns the plan for a command with these flags.
func plan(t *testing.T, config tenure.Config, args ...string) (Plan, error) {
	t.Helper()
	var f CommandFlags
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Plan(config, []string{"sh"})
}

func TestCommandsHaveDocumentedDefaults(t *testing.T) {
	t.Parallel()
	p, err := plan(t, tenure.Config{Lease: 10 * time.Second}, "--health-command", "true")
	if err != nil {
		t.Fatal(err)
	}
	if p.MaxRestarts != 5 {
		t.Errorf("a command has up to %d restarts in a row, want 5", p.MaxRestarts)
	}
	if p.Health.Every != 10*time.Second {
		t.Errorf("a check every %v, want 10s", p.Health.Every)
	}
	if UnhealthyAfter != 3 {
		t.Errorf("a command is unhealthy after %d failures, want 3", UnhealthyAfter)
	}
	if p.Grace != time.Second {
		t.Errorf("the grace is %v, want 1s", p.Grace)
	}
	for every, want := range map[string]time.Duration{"3s": 3 * time.Second, "10s": 10 * time.Second, "1m": 10 * time.Second} {
		p, err := plan(t, tenure.Config{Lease: 10 * time.Second}, "--health-command", "true", "--health-every", every)
		if err != nil || p.Health.Timeout != want {
			t.Errorf("every %s, a check may take %v (%v), want %v", every, p.Health.Timeout, err, want)
		}
	}
	for lease, want := range map[time.Duration]time.Duration{
		time.Minute: 100 * time.Millisecond, 2 * time.Second: 100 * time.Millisecond,
		time.Second: 50 * time.Millisecond, 200 * time.Millisecond: 10 * time.Millisecond,
	} {
		if p, err := plan(t, tenure.Config{Lease: lease}); err != nil || p.Lead != want {
			t.Errorf("with a lease of %v, the kill comes %v before trust ends (%v), want %v", lease, p.Lead, err, want)
		}
	}
	// At most lease - margin - 2 x refresh: 30 s - 3 s - 2 x 5 s.
	config := tenure.Config{Lease: 30 * time.Second, RefreshInterval: 5 * time.Second}
	for grace, fits := range map[string]bool{"17s": true, "17.1s": false} {
		if _, err := plan(t, config, "--grace", grace); (err == nil) != fits {
			t.Errorf("a grace of %s: %v; the longest grace is 17s", grace, err)
		}
	}
}

func TestNodesWithCommandsSettle(t *testing.T) {
	t.Parallel()
	var f Flags
	cmd := &cobra.Command{}
	f.Register(cmd.Flags())
	if err := cmd.ParseFlags([]string{"--dsn", "postgres://127.0.0.1:1/none", "--role", "billing"}); err != nil {
		t.Fatal(err)
	}
	config, err := f.GuardedConfig(cmd)
	if err != nil || config.Settle != 200*time.Millisecond {
		t.Errorf("the settle time is %v (%v), want 200ms", config.Settle, err)
	}
}
