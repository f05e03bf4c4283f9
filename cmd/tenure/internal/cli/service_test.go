package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// managerMessages are the messages that a service manager receives.
type managerMessages struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

// listenAsManager starts a service manager for one process.
func listenAsManager(t *testing.T) managerMessages {
	t.Helper()
	folder, err := os.MkdirTemp("", "manager") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return managerMessages{t, conn, path}
}

// receives reports whether a line with this beginning arrives within a time.
func (n managerMessages) receives(line string, within time.Duration) bool {
	n.t.Helper()
	if err := n.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		n.t.Fatal(err)
	}
	message := make([]byte, 4096)
	for {
		length, err := n.conn.Read(message)
		if err != nil {
			return false
		}
		for got := range strings.SplitSeq(string(message[:length]), "\n") {
			if strings.HasPrefix(got, line) {
				return true
			}
		}
	}
}

// await waits for a line.
func (n managerMessages) await(line string) {
	n.t.Helper()
	if !n.receives(line, patience) {
		n.t.Fatalf("notifying the service manager failed %q within %v", line, patience)
	}
}

// The service manager learns why the program is not ready, and the
// configuration can still be read again.
func TestServiceWithoutDatabaseReportsStatus(t *testing.T) {
	t.Parallel()
	manager := listenAsManager(t)
	path := writeFile(t, "[database]", `dsn = "postgres://127.0.0.1:1/nowhere"`)
	node := launchWith(t, []string{"NOTIFY_SOCKET=" + manager.path}, "run", "--role", "billing", "--config", path)
	manager.await("STATUS=Waiting for the database.")
	node.awaitLog("opening a session failed")
	node.signal(syscall.SIGHUP)
	node.awaitLog("the configuration was reloaded")
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	invokeWith(t, []string{"NOTIFY_SOCKET=nowhere"}, "run", "--role", "billing", "--config", path).want(t, console.ExitUsage)
}

// The watchdog is fed while the database answers, not while it does not, and
// again when it does.
func TestWatchdogFollowsTheSession(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	manager := listenAsManager(t)
	node := launchWith(t, []string{"NOTIFY_SOCKET=" + manager.path, "WATCHDOG_USEC=200000"},
		"run", "--role", "billing", "--dsn", server.DSN())
	manager.await("READY=1")
	manager.await("STATUS=Leads billing (term ")
	manager.await("WATCHDOG=1")

	server.Stop(t, "fast")
	manager.await("STATUS=The database does not respond; retrying.")
	if manager.receives("WATCHDOG=1", 500*time.Millisecond) {
		t.Error("the watchdog was fed without a session")
	}
	server.Start(t)
	manager.await("STATUS=Leads billing (term ") // a node that ends before that reports the loss
	manager.await("WATCHDOG=1")
	node.signal(syscall.SIGTERM)
	manager.await("STOPPING=1")
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}
