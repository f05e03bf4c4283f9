package cluster_test

import (
	"fmt"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
)

// burn keeps the processors busy with n processes until the test ends.
func burn(t *testing.T, n int) {
	t.Helper()
	for range n {
		burner := exec.CommandContext(t.Context(), "nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err := burner.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = burner.Process.Kill()
			_ = burner.Wait() // it was killed
		})
	}
}

// Three members that join one after the other share 10,000 roles evenly within 10 s of the
// last joining, on a machine with a load of 13 and without.
func TestTenThousandRolesAreSharedWithinTenSeconds(t *testing.T) {
	pgtest.Long(t)
	for name, burners := range map[string]int{"idle machine": 0, "busy machine": 13} {
		t.Run(name, func(t *testing.T) {
			const roles, pause, limit = 10_000, 2 * time.Second, 10 * time.Second
			server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_locks_per_transaction": "1024"}})
			schema := server.Schema(t)
			site := site{postgrestest.On(t, server, schema), t, server.DSN(), schema}
			burn(t, burners)
			shared := cluster.SpreadConfig{Roles: cluster.Partitions("orders", roles), MoveDelay: time.Second}
			var members []*sharer
			for i, name := range []string{"a", "b", "c"} {
				if i > 0 {
					time.Sleep(pause) // not for what the test waits for: the members join one after the other
				}
				members = append(members, site.join(name, cluster.Config{}, func(c *tenure.Config) { c.Logger = slog.New(slog.DiscardHandler) }).share(shared, idle))
			}
			joined := time.Now()
			err := testkit.Until(t.Context(), limit, 100*time.Millisecond, func() error {
				least, most, sum := roles, 0, 0
				for _, m := range members {
					n := len(m.Held())
					least, most, sum = min(least, n), max(most, n), sum+n
				}
				if sum == roles && most-least <= 1 {
					return nil
				}
				return fmt.Errorf("%d of %d roles are led, in shares of %d to %d; want shares that differ by at most one", sum, roles, least, most)
			})
			if err != nil {
				t.Fatalf("the last member has joined: %v", err)
			}
			t.Logf("shared evenly after %v", time.Since(joined))
		})
	}
}
