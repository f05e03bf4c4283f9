package netns

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
)

func network(t *testing.T, namespaces int) *Network {
	t.Helper()
	n, err := New(t.Context(), namespaces)
	if errors.Is(err, ErrUnavailable) {
		t.Skip("NOT TESTED:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// left lists the namespaces and interfaces with a prefix.
func left(t *testing.T, prefix string) []string {
	t.Helper()
	spaces, err := filepath.Glob("/run/netns/" + prefix + "-*")
	links, linksErr := filepath.Glob("/sys/class/net/" + prefix + "*")
	if err := errors.Join(err, linksErr); err != nil {
		t.Fatal(err)
	}
	return append(spaces, links...)
}

func TestNetworkIsRemovedWithItsProcesses(t *testing.T) {
	n := network(t, 2)
	// The program waits inside the namespace for as long as it may.
	line := append(n.Within(1), "cat")
	process := exec.Command(line[0], line[1:]...)
	stdin, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer process.Wait() //nolint:errcheck // it is killed
	if _, err := stdin.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil { // it runs in the namespace now
		t.Fatal(err)
	}
	if len(left(t, n.prefix)) != 5 {
		t.Errorf("there are %v, want two namespaces, two links and a bridge", left(t, n.prefix))
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(stdout); len(rest) > 0 || err != nil {
		t.Errorf("the program in the namespace printed %q, %v; want its end", rest, err)
	}
	if found := left(t, n.prefix); len(found) > 0 {
		t.Errorf("left: %v", found)
	}
}

func TestSweepRemovesNetworksOfDeadProcessesOnly(t *testing.T) {
	mine := network(t, 1)
	defer mine.Close()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	prefix := fmt.Sprintf("tn%da", dead.Process.Pid)
	orphan := &Network{prefix: prefix, subnet: "10.254.254."}
	if err := orphan.build(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := left(t, prefix); len(found) > 0 {
		t.Errorf("left of the process that ended: %v", found)
	}
	if len(left(t, mine.prefix)) == 0 {
		t.Error("the network of this process was removed, too")
	}
}
