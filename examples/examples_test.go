package examples

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// What people copy from the README is what is compiled and run here.
func TestReadmeShowsTheExample(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("leader/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := bytes.Cut(readme, []byte("```go\n"))
	block, _, closed := bytes.Cut(rest, []byte("```\n"))
	if !found || !closed {
		t.Fatal("the README has no block of Go")
	}
	if lines := bytes.Count(block, []byte("\n")); lines > 20 {
		t.Errorf("the README's program has %d lines, want at most 20", lines)
	}
	if !bytes.Equal(block, program) {
		t.Error("the README's first block of Go differs from leader/main.go")
	}
}

// The tutorial's programs are the examples, so its steps work as typed.
func TestTutorialShowsTheExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/tutorial/first-leader.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := page
	for _, example := range []string{"leader", "billing"} {
		program, err := os.ReadFile(filepath.Join(example, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := bytes.Cut(rest, []byte("```go\n"))
		block, following, found := bytes.Cut(after, []byte("```\n"))
		if !found || !bytes.Equal(block, program) {
			t.Errorf("the next block of Go in the tutorial differs from %s/main.go", example)
		}
		rest = following
	}
}

// build compiles an example and returns its file.
func build(t *testing.T, example string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), example)
	if output, err := exec.Command("go", "build", "-o", program, "./"+example).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

func TestLeaderExampleLeads(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	program := build(t, "leader")
	const leads = "only this replica writes invoices, in term "
	first := launch(t, program, dsn)
	first.await(t, leads)
	second := launch(t, program, dsn)
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.await(t, leads)
	if err := second.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestBillingExampleWritesInvoices(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	program := build(t, "billing")

	first := launch(t, program, dsn)
	first.await(t, "invoice written in term ")
	second := launch(t, program, dsn)
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	second.await(t, "invoice written in term ")

	if err := second.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	second.await(t, "to=stopped")
	if err := second.command.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	var terms int
	if err := pgtest.Conn(t, dsn).QueryRow(t.Context(), "SELECT count(DISTINCT term) FROM invoices").Scan(&terms); err != nil || terms != 2 {
		t.Errorf("invoices of %d terms, %v", terms, err)
	}
}

// TestBillingStartsThreeCopiesAtOnce starts three copies on an empty database at the
// same time and ends them with SIGTERM.
func TestBillingStartsThreeCopiesAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	program := build(t, "billing")
	var copies [3]process
	for i := range copies {
		copies[i] = launch(t, program, dsn)
	}
	for _, c := range copies {
		c.await(t, "to=follower") // it has a session
	}
	db := pgtest.Conn(t, dsn)
	err := children.Until(t.Context(), time.Minute, 10*time.Millisecond, func() error {
		var written int
		err := db.QueryRow(t.Context(), "SELECT count(*) FROM invoices").Scan(&written)
		if err == nil && written == 0 {
			err = errors.New("no invoice was written")
		}
		return err // also until the table exists
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("SIGTERM to a copy: %v; it has ended before", err)
		}
	}
	for _, c := range copies {
		if output, err := io.ReadAll(c.output); err != nil {
			t.Error(err)
		} else if err := c.command.Wait(); err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, output)
		}
	}
}

// The service of the new user's day stays short.
func TestServiceStaysUnder60Lines(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("service/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(program, []byte("\n")); lines >= 60 {
		t.Errorf("the service has %d lines, want fewer than 60", lines)
	}
}

// TestScriptOfNewUsersDaySucceeds runs the script of a day: a service with three replicas, a program
// in Python, shards, and a schedule that changes. It ends with a failure at the first
// expectation that is not met.
func TestScriptOfNewUsersDaySucceeds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	programs := t.TempDir()
	for _, target := range []string{"./service", "./shards", "../cmd/tenure"} {
		if output, err := exec.Command("go", "build", "-o", programs+"/", target).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", target, err, output)
		}
	}
	server := pgtest.Start(t, pgtest.Options{})
	day := exec.CommandContext(t.Context(), "./day.sh", server.Database(t))
	day.Env = append(os.Environ(), "BIN="+programs, "PORT="+strconv.Itoa(freePorts(t, 5)))
	day.Cancel = func() error { return day.Process.Signal(syscall.SIGTERM) } // it ends its children
	output, err := day.CombinedOutput()
	if err != nil || !bytes.HasSuffix(output, []byte("== done\n")) {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
}

// TestFirstUseReachesFencedWrite runs the script of the first use: a clone that shows a failover, and an
// empty module that becomes a leader with a fenced write. It reports the times of the steps.
func TestFirstUseReachesFencedWrite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	if _, err := os.Stat("../.git"); err != nil {
		t.Skip("this is no clone of the repository")
	}
	walk := exec.CommandContext(t.Context(), "./first-use.sh", pgtest.Shared(t).Database(t))
	walk.Cancel = func() error { return walk.Process.Signal(syscall.SIGTERM) } // it ends its child
	output, err := walk.CombinedOutput()
	if err != nil || !bytes.HasSuffix(output, []byte("== done\n")) {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
}

// freePorts returns the first of n consecutive ports on which nothing listens.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		listeners := []net.Listener{first}
		for next := port + 1; next < port+n && err == nil; next++ {
			var l net.Listener
			if l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(next)); err == nil {
				listeners = append(listeners, l)
			}
		}
		for _, l := range listeners {
			_ = l.Close() // it has accepted nothing
		}
		if err == nil {
			return port
		}
	}
	t.Fatal("no consecutive ports are free")
	return 0
}

// process is a running example, with the lines it prints.
type process struct {
	command *exec.Cmd
	output  io.Reader
	lines   *bufio.Scanner // of output
}

func launch(t *testing.T, program, dsn string) process {
	t.Helper()
	command := exec.CommandContext(t.Context(), program) // ended with the test at the latest
	command.Env = append(os.Environ(), "DATABASE_URL="+dsn)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // an error if it was killed or is waited for twice
	return process{command, output, bufio.NewScanner(output)}
}

// await reads up to a line that contains a text.
func (p process) await(t *testing.T, text string) {
	t.Helper()
	for p.lines.Scan() {
		if strings.Contains(p.lines.Text(), text) {
			return
		}
		t.Log(p.lines.Text())
	}
	t.Fatalf("the program ended before it printed %q: %v", text, p.lines.Err())
}
