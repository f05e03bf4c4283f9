package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/postgres"
)

// The environment variables for a child process of these tests.
const (
	childSchema = "TENURE_CLUSTER_CHILD_SCHEMA"
	childDSN    = "TENURE_CLUSTER_CHILD_DSN"
)

// child is a program that leads a role, and whose work in flight ends when its
// input does. It prints its id and its log, and returns its exit code.
func child() int {
	store, err := postgres.New(os.Getenv(childDSN), postgres.Config{Schema: os.Getenv(childSchema)})
	if err != nil {
		return failed(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	member, err := cluster.Join(ctx, store, tenure.Config{Name: "child", Logger: slog.New(slog.NewTextHandler(os.Stdout, nil))}, cluster.Config{})
	if err != nil {
		return failed(err)
	}
	election, err := member.Node().Election(tenure.NamedRole("r"))
	if err == nil {
		err = election.Start(context.Background())
	}
	if err == nil {
		_, err = election.WaitForLeadership(ctx)
	}
	if err != nil {
		return failed(err)
	}
	guard, _ := member.InFlight().Enter()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		guard.Done()
	}()
	fmt.Println(member.ID())
	if err := member.ShutdownOnSignal(ctx); err != nil {
		return failed(err)
	}
	return 0
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// process is a child that runs.
type process struct {
	*exec.Cmd
	id     cluster.NodeID
	work   io.Closer // ends its work in flight
	stderr *strings.Builder
}

func (s site) startChild() process {
	s.t.Helper()
	executable, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	p := process{Cmd: exec.CommandContext(within(s.t), executable), stderr: &strings.Builder{}}
	p.Env = append(os.Environ(), childDSN+"="+s.dsn, childSchema+"="+s.schema)
	p.Stderr = p.stderr
	work, err := p.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	p.work = work
	output, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if id, err := cluster.ParseNodeID(lines.Text()); err == nil {
			p.id = id
		}
		if strings.Contains(lines.Text(), "until a signal") { // from here on it handles them
			return p
		}
	}
	s.t.Fatalf("the child ended with %v: %s", p.Wait(), p.stderr)
	return p
}

func (p process) signal(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func TestSignalDrainsAndShutsDown(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a := site.join("a", cluster.Config{})
	p := site.startChild()
	heir := a.campaign("r")
	p.signal(t)
	a.seesStatus(p.id, cluster.Draining)
	_ = p.work.Close()
	if err := p.Wait(); err != nil {
		t.Errorf("the child ended with %v: %s", err, p.stderr)
	}
	a.seesGone(p.id)
	leads(t, heir)
	if reason := site.lastReason("r"); reason != string(history.EndShutdown) {
		t.Errorf("the term ended as %q; want shutdown", reason)
	}
}

func TestSecondSignalForces(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	p := site.startChild()
	a := site.join("a", cluster.Config{})
	p.signal(t)
	a.seesStatus(p.id, cluster.Draining)
	p.signal(t)
	err := p.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(p.stderr.String(), "signal") {
		t.Errorf("the child ended with %v; want exit code 1 and the signal in: %s", err, p.stderr)
	}
}

// A shutdown that begins elsewhere, or the end of the context, is as good as a
// signal.
func TestShutdownOnSignalReturnsWithoutASignal(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	a, b := site.join("a", cluster.Config{}), site.join("b", cluster.Config{})
	elsewhere := start(func() error { return a.ShutdownOnSignal(context.Background()) })
	if err := a.Shutdown(within(t)); err != nil {
		t.Error(err)
	}
	if err := result(t, elsewhere); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.ShutdownOnSignal(ctx); err != nil {
		t.Errorf("the context was taken for a reason to force: %v", err)
	}
}
