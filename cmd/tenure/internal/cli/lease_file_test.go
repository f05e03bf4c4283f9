package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// When the SQLite file, or the log beside it, is removed under a leader, its
// term ends immediately, and another process leads with the file that is now at
// the path.
func TestReplacedLeaseFileEndsTerm(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		endings []string
		cause   string
	}{
		"the file": {[]string{"", "-wal", "-shm"}, "was removed or replaced"},
		"its log":  {[]string{"-wal", "-shm"}, "removed"}, // a new connection may find no tables in the same file
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "leases.db")
			args := []string{"run", "-o", "json", "--role", "billing", "--dsn", "sqlite:" + path, "--lease", "9s"}
			one := launch(t, append(args, "--name", "one")...)
			led := one.await("acquired").term()
			for _, ending := range c.endings {
				if err := os.Remove(path + ending); err != nil {
					t.Fatal(err)
				}
			}
			two := launch(t, append(args, "--name", "two")...)
			if lost := one.await("lost"); !strings.Contains(lost["error"].(string), c.cause) {
				t.Errorf("lost: %v", lost["error"])
			}
			if _, next := awaitAny(t, "acquired", one, two); next.term() <= led {
				t.Errorf("term %d after term %d", next.term(), led)
			}
		})
	}
}
