package mariatest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		runOwner()
	}
	Main(m)
}

// assert runs a statement that fails if a condition does not hold.
func assert(t *testing.T, server *Server, condition string) {
	t.Helper()
	server.Execute(t, `DELIMITER //
		BEGIN NOT ATOMIC
			IF NOT (`+condition+`) THEN
				SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'it does not hold';
			END IF;
		END//`)
}

func TestDatabaseIsDroppedWithTheTest(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	var name string
	exists := func() string {
		return "EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = '" + name + "')"
	}
	t.Run("Inner", func(t *testing.T) {
		name = server.Database(t)
		if name == server.Database(t) {
			t.Fatalf("%s was given out twice", name)
		}
		server.Execute(t, "CREATE TABLE "+name+".content (id int)")
		assert(t, server, exists())
	})
	assert(t, server, "NOT "+exists())
}

func TestRestartKeepsPortAndData(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	database := server.Database(t)
	for _, mode := range []string{"term", "kill"} {
		table := database + "." + "before_" + mode
		server.Execute(t, "CREATE TABLE "+table+" (id int); INSERT INTO "+table+" VALUES (1)")
		before, port := server.PID(), server.Port
		server.Restart(t, mode)
		if server.PID() == before || server.Port != port {
			t.Errorf("%s: process %d on port %d, then %d on %d", mode, before, port, server.PID(), server.Port)
		}
		assert(t, server, "(SELECT count(*) FROM "+table+") = 1")
	}
	server.Stop(t, "term")
	if server.PID() != 0 {
		t.Error("it still runs")
	}
	server.Stop(t, "term") // does nothing
	server.Start(t)
}

func TestSettingsReachTheServer(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{Settings: map[string]string{"innodb_lock_wait_timeout": "7", "innodb_flush_log_at_trx_commit": "1"}})
	assert(t, server, "@@global.innodb_lock_wait_timeout = 7 AND @@global.innodb_flush_log_at_trx_commit = 1")
	assert(t, server, "NOT @@log_bin AND NOT @@performance_schema AND @@global.character_set_server = 'utf8mb4'")
	if !strings.Contains(server.Log(), "ready for connections") {
		t.Errorf("the log is %s", server.Log())
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	t.Parallel()
	require(t)
	_, err := newServer(Options{Settings: map[string]string{"no_such_variable": "1"}})
	if err == nil || !strings.Contains(err.Error(), "unknown variable 'no_such_variable=1'") {
		t.Errorf("got %v", err)
	}
}

func TestPauseStopsAnswers(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	server.Pause(t)
	conn, err := net.Dial("tcp", server.address()) // the kernel accepts it
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 1)
	if _, err := conn.Read(greeting); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a paused server: %v", err)
	}
	server.Resume(t)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(greeting); err != nil {
		t.Errorf("a resumed server: %v", err)
	}

	// Both ways of stopping it end a paused server too.
	for _, mode := range []string{"term", "kill"} {
		server.Pause(t)
		server.Restart(t, mode)
	}
	if err := server.stop("gently"); err == nil {
		t.Error("an unknown mode was accepted")
	}
}

func TestConnectionStringsNameTheDatabase(t *testing.T) {
	t.Parallel()
	server := &Server{Host: "127.0.0.1", Port: 15001}
	if got, want := server.DSN("one"), "root@tcp(127.0.0.1:15001)/one"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := server.URL("one"), "mysql://root@127.0.0.1:15001/one"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// ownerVariable makes this test binary a process that starts a server, says
// where, and waits to be killed.
const ownerVariable = "MARIATEST_OWNER"

func runOwner() {
	server, err := newServer(Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.PID(), server.directory)
	select {}
}

func TestKilledOwnerLeavesNothing(t *testing.T) {
	t.Parallel()
	require(t)
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
	killed := owner.Process.Kill()
	_ = owner.Wait() // killed: an error by nature
	if err := errors.Join(err, killed); err != nil {
		t.Fatal(err)
	}
	number, place, _ := strings.Cut(strings.TrimSpace(line), " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 1 || !strings.Contains(place, "tenure-maria-") {
		t.Fatalf("no server was started: %q", line)
	}
	testkit.AwaitNil(t, 20*time.Second, func() error {
		_, statErr := os.Stat(filepath.Dir(place))
		killErr := sandbox.Signal(pid, syscall.Signal(0))
		if errors.Is(statErr, os.ErrNotExist) && errors.Is(killErr, os.ErrProcessDone) {
			return nil
		}
		return fmt.Errorf("process %d: %w; directory: %w", pid, killErr, statErr)
	})
}
