package notify

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// patience bounds every wait for a message.
const patience = 30 * time.Second

// manager is a service manager that listens.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

// listen listens on a socket of this name, in the file system or, with a name that
// begins with @, in the abstract namespace.
func listen(t *testing.T, path string) manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return manager{t, conn, path}
}

func newManager(t *testing.T) manager {
	t.Helper()
	folder, err := os.MkdirTemp("", "notify") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return listen(t, filepath.Join(folder, "s"))
}

// environment is what the manager sets for a process, with more.
func (m manager) environment(more ...string) Environment {
	variables := map[string]string{"NOTIFY_SOCKET": m.path}
	for _, entry := range more {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	return func(name string) (string, bool) { value, set := variables[name]; return value, set }
}

// next is the next message.
func (m manager) next() string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		m.t.Fatal(err)
	}
	message := make([]byte, 4096)
	n, err := m.conn.Read(message)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(message[:n])
}

func (m manager) want(message string) {
	m.t.Helper()
	if got := m.next(); got != message {
		m.t.Fatalf("got %q, want %q", got, message)
	}
}

// silent fails the test if a message comes within a time.
func (m manager) silent(within time.Duration) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		m.t.Fatal(err)
	}
	message := make([]byte, 4096)
	if n, err := m.conn.Read(message); err == nil {
		m.t.Fatalf("got %q", message[:n])
	}
}

// start starts a service; it must not fail to send.
func (m manager) start(ask func() Health, more ...string) *Service {
	m.t.Helper()
	socket, err := Open(m.environment(more...))
	if err != nil {
		m.t.Fatal(err)
	}
	service := Start(socket, ask, func(err error) { m.t.Error(err) })
	m.t.Cleanup(func() {
		if err := service.Close(); err != nil {
			m.t.Error(err)
		}
	})
	return service
}

func always(health Health) func() Health { return func() Health { return health } }

func TestServiceReportsEachState(t *testing.T) {
	manager := newManager(t)
	service := manager.start(always(Health{true, "waits for billing"}))
	manager.want("READY=1\nSTATUS=waits for billing")
	service.Reload(func() { manager.want("RELOADING=1") })
	manager.want("READY=1")
	service.Stopping()
	service.Stopping()
	manager.want("STOPPING=1")
	for range 2 {
		if err := service.Close(); err != nil {
			t.Fatal(err)
		}
	}
	manager.silent(10 * time.Millisecond)
}

func TestStatusIsSentBeforeReady(t *testing.T) {
	manager := newManager(t)
	socket, err := Open(manager.environment())
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Status("waits for its database"); err != nil {
		t.Fatal(err)
	}
	manager.want("STATUS=waits for its database")
	for range 2 {
		if err := socket.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAbstractSocketIsUsed(t *testing.T) {
	manager := listen(t, "@tenure-notify-"+strconv.Itoa(os.Getpid()))
	manager.start(always(Health{true, "s"}))
	manager.want("READY=1\nSTATUS=s")
}

func TestStatusIsSentWhenItChanges(t *testing.T) {
	manager := newManager(t)
	var asked atomic.Int32
	manager.start(func() Health {
		if asked.Add(1) > 2 {
			return Health{Status: "leads\nWATCHDOG=1"}
		}
		return Health{Status: "waits"}
	})
	manager.want("READY=1\nSTATUS=waits")
	manager.want("STATUS=leads WATCHDOG=1") // one line, not two messages
}

// TestUnhealthyServiceSendsNoWatchdog: a sign of life comes twice per interval, and while the program is
// unhealthy none at all.
func TestUnhealthyServiceSendsNoWatchdog(t *testing.T) {
	manager := newManager(t)
	var sick atomic.Bool
	began := time.Now() // before the first interval: a test that is late does not shorten the four
	service := manager.start(func() Health { return Health{Healthy: !sick.Load()} }, "WATCHDOG_USEC=200000", "WATCHDOG_PID="+strconv.Itoa(os.Getpid()))
	manager.want("READY=1\nSTATUS=")
	for range 4 {
		manager.want("WATCHDOG=1")
	}
	// Late is what a busy machine may be; early would be another interval.
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("four signs of life within %v, want one in 100 ms", took)
	}
	sick.Store(true)
	for drained := false; !drained; { // one may be on its way
		_ = manager.conn.SetReadDeadline(time.Now().Add(150 * time.Millisecond))
		_, err := manager.conn.Read(make([]byte, 4096))
		drained = err != nil
	}
	manager.silent(300 * time.Millisecond)
	service.Stopping()
	manager.want("STOPPING=1")
	manager.want("WATCHDOG=1") // what ends is not ill
}

func TestWatchdogIsOffByDefault(t *testing.T) {
	for name, variables := range map[string][]string{
		"no interval":     nil,
		"another process": {"WATCHDOG_USEC=2000", "WATCHDOG_PID=1"},
	} {
		t.Run(name, func(t *testing.T) {
			manager := newManager(t)
			manager.start(always(Health{Healthy: true}), variables...)
			manager.want("READY=1\nSTATUS=")
			manager.silent(50 * time.Millisecond)
		})
	}
}

// TestMissingManagerIsIgnored: without a manager everything works, silently.
func TestMissingManagerIsIgnored(t *testing.T) {
	socket, err := Open(func(string) (string, bool) { return "", false })
	if socket != nil || err != nil {
		t.Fatal(socket, err)
	}
	service := Start(socket, nil, nil)
	reloaded := false
	service.Reload(func() { reloaded = true })
	service.Stopping()
	if err := service.Close(); err != nil || !reloaded {
		t.Fatal(err, reloaded)
	}
}

func TestInvalidEnvironmentIsReported(t *testing.T) {
	manager := newManager(t)
	for _, test := range []struct{ variable, want string }{
		{"NOTIFY_SOCKET=vsock:2:1", "must be the path"},
		{"NOTIFY_SOCKET=" + manager.path + "-not", "no such file"},
		{"WATCHDOG_USEC=5s", "microseconds"},
		{"WATCHDOG_USEC=0", "microseconds"},
		{"WATCHDOG_USEC=9223372036854775807", "microseconds"},
	} {
		if _, err := Open(manager.environment(test.variable)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.variable, err, test.want)
		}
	}
}

// TestSendErrorIsReported: what cannot be sent is reported, and stops nothing.
func TestSendErrorIsReported(t *testing.T) {
	manager := newManager(t)
	socket, err := Open(manager.environment())
	if err != nil {
		t.Fatal(err)
	}
	failures := make(chan error, 10)
	service := Start(socket, always(Health{}), func(err error) { failures <- err })
	if err := manager.conn.Close(); err != nil {
		t.Fatal(err)
	}
	service.Stopping()
	if err := <-failures; !strings.Contains(err.Error(), "service manager") {
		t.Error(err)
	}
	if err := service.Close(); err != nil {
		t.Error(err)
	}
}

func TestTakeHidesTheVariables(t *testing.T) {
	manager := newManager(t)
	var unset []string
	socket, err := Take(manager.environment(), func(name string) error { unset = append(unset, name); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if got := strings.Join(unset, " "); got != "NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID" {
		t.Error(got)
	}
}
