package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/testkit"
)

// A server that is killed cannot remove its shared memory.
func TestKilledServerLeavesNoSharedMemory(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t)
	server := start(t, sandbox, Options{})
	pid := server.PID()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(maps), " /dev/shm/PostgreSQL.") {
		t.Errorf("the server has shared memory outside its directory:\n%s", maps)
	}
	content, err := os.ReadFile(filepath.Join(server.Data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(strings.Split(string(content), "\n")[6]) // key and id
	if !hasMemory(t, fields[1]) {
		t.Fatalf("no System V shared memory %s", fields[1])
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	// The server's other processes end when they see its end.
	err = testkit.Until(t.Context(), 30*time.Second, 10*time.Millisecond, func() error {
		if hasMemory(t, fields[1]) {
			return fmt.Errorf("System V shared memory %s is left", fields[1])
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// hasMemory reports whether the System V shared memory of an id exists.
func hasMemory(t *testing.T, id string) bool {
	t.Helper()
	all, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		if fields := strings.Fields(line); fields[1] == id {
			return true
		}
	}
	return false
}
