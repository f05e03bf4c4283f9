package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// launchDemo starts the demonstration with a directory of its own for temporary
// files.
func launchDemo(t *testing.T, args ...string) (demo *process, temporary string) {
	t.Helper()
	// Not t.TempDir: the server's account must be able to enter it.
	temporary, err := os.MkdirTemp("", "tenure-demo-")
	if err == nil {
		err = os.Chmod(temporary, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	return launchWith(t, []string{"TMPDIR=" + temporary}, append([]string{"demo"}, args...)...), temporary
}

// descendants lists the processes whose command line or environment names the
// directory: servers by the former, nodes by the latter.
func descendants(t *testing.T, temporary string) []int {
	t.Helper()
	var pids []int
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(entries) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	for _, entry := range entries {
		command, _ := os.ReadFile(filepath.Join(entry, "cmdline")) // it may have ended
		variables, _ := os.ReadFile(filepath.Join(entry, "environ"))
		if strings.Contains(string(command)+string(variables), temporary) {
			pid, _ := strconv.Atoi(filepath.Base(entry))
			pids = append(pids, pid)
		}
	}
	return pids
}

// left lists what is left of the demonstration.
func left(t *testing.T, temporary string) (files []os.DirEntry, pids []int) {
	t.Helper()
	files, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	return files, descendants(t, temporary)
}

// awaitNothingLeft waits until no process and no file of the demonstration is
// left.
func awaitNothingLeft(t *testing.T, temporary string) {
	t.Helper()
	limit := time.After(patience)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		files, pids := left(t, temporary)
		if len(files)+len(pids) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("left: processes %v, files %v", pids, files)
		}
	}
}

// TestDemo kills leaders, tells of each failover, sums up, and leaves nothing
// behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	demo, temporary := launchDemo(t, "--for", "10s", "--kill-every", "0.5", "-o", "json")
	events := demo.rest()
	if code := demo.exit(); code != exitDone {
		t.Fatalf("exit code %d: %s", code, demo.log())
	}
	if files, pids := left(t, temporary); len(files)+len(pids) > 0 {
		t.Errorf("left: processes %v, files %v", pids, files)
	}
	var failovers int
	var term float64
	killed := ""
	for i, e := range events[:len(events)-1] {
		name := e["node_name"].(string)
		switch e["event"] {
		case "elected":
			if e["term"].(float64) <= term {
				t.Errorf("term %v after %v", e["term"], term)
			}
			term = e["term"].(float64)
			if i == 0 {
				break
			}
			failovers++
			took := e["failover_seconds"].(float64)
			if e["replaced"] != killed || name == killed || took <= 0 || took > 10 {
				t.Errorf("after the death of %s: %v", killed, e)
			}
		case "killed":
			killed = name
		default:
			t.Errorf("unknown event %v", e)
		}
	}
	summary := events[len(events)-1]
	if summary["event"] != "summary" || int(summary["failovers"].(float64)) != failovers || failovers < 3 {
		t.Errorf("%d failovers, %v", failovers, summary)
	}
}

// TestDemoInterrupted: after a signal, and also after a kill, nothing is left.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, exitDone}, {syscall.SIGTERM, exitDone}, {syscall.SIGKILL, -1}} {
		t.Run(test.signal.String(), func(t *testing.T) {
			t.Parallel()
			demo, temporary := launchDemo(t)
			if line, ok := demo.line(); !ok || !strings.Contains(line, " leads term …") {
				t.Fatalf("%q; %s", line, demo.log())
			}
			if len(descendants(t, temporary)) < 2+demoNodes { // itself, the nodes, the server
				t.Error("the processes of the demonstration are not found")
			}
			demo.signal(test.signal)
			if code := demo.exit(); code != test.code {
				t.Errorf("exit code %d: %s", code, demo.log())
			}
			if test.signal != syscall.SIGKILL {
				if files, pids := left(t, temporary); len(files)+len(pids) > 0 {
					t.Errorf("left at the end: processes %v, files %v", pids, files)
				}
			}
			awaitNothingLeft(t, temporary)
		})
	}
}

// TestDemoNodeEndsWithStandardInput: whatever becomes of the demonstration.
func TestDemoNodeEndsWithStandardInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := launch(t, place.with("demo-node", "-o", "json", "--role", "demo")...)
	node.await("acquired")
	if err := node.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	node.await("released")
	if code := node.exit(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// TestDemoScreen: the picture is drawn over the last one.
func TestDemoScreen(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	now := time.Now()
	one := &demoSlot{name: "node-1", state: "LEADER", since: now}
	show := &demoShow{slots: []*demoSlot{one}, leader: one, term: 1795347000042, next: now.Add(time.Second)}
	width, height := 80, 25
	screen := &demoScreen{out: &output{w: &text}, database: "PostgreSQL 15.18", size: func() (int, int, error) { return width, height, nil }}
	if err := screen.draw(show); err != nil {
		t.Fatal(err)
	}
	first := text.String()
	for _, want := range []string{"PostgreSQL 15.18", "node-1", "LEADER", "node-1 leads term …000042 ", "no failovers"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	text.Reset()
	show.leader = nil
	for i := range int64(20) {
		show.failovers = append(show.failovers, failover{from: "node-1", to: "node-2", term: i, took: time.Duration(i) * time.Millisecond})
	}
	if err := screen.draw(show); err != nil {
		t.Fatal(err)
	}
	second := text.String()
	if up := "\x1b[" + strconv.Itoa(strings.Count(first, "\n")) + "A"; !strings.HasPrefix(second, up) {
		t.Errorf("it does not begin with %q: %q", up, second)
	}
	for _, want := range []string{"Nobody leads", "20 failovers: median 9.5 ms, fastest 0.0 ms, slowest 19.0 ms", "term 19 "} {
		if !strings.Contains(second, want) {
			t.Errorf("%q is not in\n%s", want, second)
		}
	}
	if strings.Contains(second, "term 11 ") {
		t.Error("old failovers are still listed")
	}

	text.Reset()
	width, height = 20, 5
	if err := screen.draw(show); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(text.String(), "\n"); len(lines) != height || !strings.HasSuffix(lines[0], "ATenure: 3 nodes on \x1b[K") {
		t.Errorf("not cut to the terminal: %q", lines)
	}
}

// TestSummaryInJSON: without failovers there are no figures.
func TestSummaryInJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(newSummary(nil))
	if err != nil || !strings.Contains(string(text), `"failovers":0,"median_seconds":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestDemoIsPrivate: no other user of the machine can connect to the superuser of
// its server, and no command line has a secret.
func TestDemoIsPrivate(t *testing.T) {
	t.Parallel()
	database, err := newDemoDatabase(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := database.close(); err != nil {
			t.Error(err)
		}
	}()
	config, err := pgx.ParseConfig(database.dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var addresses string
	if err := conn.QueryRow(t.Context(), "SHOW listen_addresses").Scan(&addresses); err != nil || addresses != "" {
		t.Errorf("it listens on %q: %v", addresses, err)
	}
	if tcp, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", config.Port)); err == nil {
		_ = tcp.Close()
		t.Error("it takes connections over TCP")
	}
	private := false
	for directory := config.Host; directory != "/" && directory != os.TempDir(); directory = filepath.Dir(directory) {
		info, err := os.Stat(directory)
		if err != nil {
			t.Fatal(err)
		}
		private = private || info.Mode().Perm()&0o077 == 0
	}
	if !private {
		t.Errorf("every user can reach the socket in %s", config.Host)
	}
	if config.Password != "" {
		t.Error("the password would be on the command lines of the nodes")
	}
}
