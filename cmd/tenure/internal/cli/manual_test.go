package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/console"
)

// Each command has a page with all its flags, the same on each run.
func TestManualListsAllFlags(t *testing.T) {
	t.Parallel()
	first, second := filepath.Join(t.TempDir(), "new", "man1"), t.TempDir()
	invoke(t, "manual", first).want(t, console.ExitDone)
	invoke(t, "manual", second).want(t, console.ExitDone)
	walk(newRoot(), func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Error(err)
			return
		}
		again, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || !bytes.Equal(page, again) {
			t.Errorf("%s differs from one time to the next (%v)", name, err)
		}
		for _, want := range []string{".TH", cmd.Short[:10]} {
			if !strings.Contains(string(page), want) {
				t.Errorf("no %q in %s", want, name)
			}
		}
	})
	if hidden, err := filepath.Glob(filepath.Join(first, "*demo-node*")); err != nil || len(hidden) > 0 {
		t.Errorf("%v (%v)", hidden, err)
	}
	page, err := os.ReadFile(filepath.Join(first, "tenure-run.1"))
	if err != nil || !strings.Contains(string(page), "1970") || !strings.Contains(string(page), `--lease`) {
		t.Errorf("%v: %.300s", err, page)
	}
	invokeWith(t, []string{"SOURCE_DATE_EPOCH=1700000000"}, "manual", second).want(t, console.ExitDone)
	if page, err = os.ReadFile(filepath.Join(second, "tenure-run.1")); err != nil || !strings.Contains(string(page), "2023") {
		t.Errorf("%v: %.300s", err, page)
	}
	invokeWith(t, []string{"SOURCE_DATE_EPOCH=today"}, "manual", second).want(t, console.ExitUsage)
	invoke(t, "manual").want(t, console.ExitUsage)
	invoke(t, "manual", filepath.Join(first, "tenure.1", "x")).want(t, console.ExitUsage)
}
