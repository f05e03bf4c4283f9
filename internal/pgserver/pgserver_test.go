package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/exactly-one/tenure/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		runOwner()
	}
	goleak.VerifyTestMain(m)
}

func newSandbox(t *testing.T) *Sandbox {
	t.Helper()
	sandbox, err := NewSandbox()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.Close(); err != nil {
			t.Error(err)
		}
	})
	return sandbox
}

// inLongRun skips a test in a short run if it starts a separate server and few changes can
// break it.
func inLongRun(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
}

func start(t *testing.T, sandbox *Sandbox, options Options) *Server {
	t.Helper()
	server, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func TestCloseEndsServersAndRemovesTheirFiles(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t)
	server := start(t, sandbox, Options{})
	pid := server.PID()
	if !exists(pid) {
		t.Fatal("the server does not run")
	}
	if err := sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(sandbox.files.Directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", sandbox.files.Directory, err)
	}
	if exists(pid) {
		t.Error("the server still runs")
	}
	if err := sandbox.Close(); err != nil {
		t.Errorf("closing it again: %v", err)
	}
}

// ownerVariable makes this test binary a process that starts a server, says
// where, and waits to be killed.
const ownerVariable = "PGSERVER_TEST_OWNER"

func runOwner() {
	sandbox, err := NewSandbox()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	server, err := sandbox.Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.Port, server.Data)
	select {}
}

func TestKilledOwnerLeavesNothing(t *testing.T) {
	inLongRun(t)
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	port, data, _ := strings.Cut(strings.TrimSpace(line), " ")
	killed := owner.Process.Kill()
	_ = owner.Wait() // killed: an error by nature
	if err := errors.Join(err, killed); err != nil {
		t.Fatal(err)
	}

	directory := filepath.Dir(filepath.Dir(data))
	if !strings.Contains(directory, "tenure-pg-") {
		t.Fatalf("no server was started: %q", line)
	}
	testkit.AwaitWithin(t, 20*time.Second, "the directory is removed", func() bool {
		_, err := os.Stat(directory)
		return errors.Is(err, os.ErrNotExist)
	})
	if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
		_ = conn.Close()
		t.Error("the server still listens")
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	t.Parallel()
	sandbox := newSandbox(t)
	_, err := sandbox.Start(t.Context(), Options{Settings: map[string]string{"shared_buffers": "nonsense"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "shared_buffers"`) {
		t.Errorf("got %v", err)
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	inLongRun(t)
	t.Parallel()
	sandbox := newSandbox(t)
	server := start(t, sandbox, Options{})
	if err := server.Stop(t.Context(), Fast); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := server.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if server.PID() != 0 {
		t.Error("a process is left")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Errorf("starting it afterwards: %v", err)
	}
}

func TestFirstStartReplacesTakenPort(t *testing.T) {
	inLongRun(t)
	t.Parallel()
	sandbox := newSandbox(t)
	first := start(t, sandbox, Options{})

	installation, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	second, err := sandbox.newServer(installation, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second.Port = first.Port // as if another program had been faster
	if err := sandbox.populate(t.Context(), installation, second.Data, false); err != nil {
		t.Fatal(err)
	}
	sandbox.add(second)
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second.Port == first.Port {
		t.Errorf("both listen on %d", first.Port)
	}
}

func TestUnknownStopModeIsRejected(t *testing.T) {
	t.Parallel()
	if err := start(t, newSandbox(t), Options{}).Stop(t.Context(), "gentle"); err == nil {
		t.Error("accepted")
	}
}
