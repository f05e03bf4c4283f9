package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/sandbox"
)

// As the first process of a container, the program waits for processes that
// "docker exec" and probes have left.
func TestFirstProcessReapsOrphans(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a namespace of processes: run it as root")
	}
	node := launchProgram(t, "unshare", nil, append([]string{"--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0]},
		newPlace(t).guarded("echo run; exec sleep 1000")...)...)
	node.want("run")
	first := sandbox.Children(node.command.Process.Pid)
	if len(first) != 1 {
		t.Fatalf("the namespace has the first processes %v, want one", first)
	}
	guardians := sandbox.Children(first[0])
	const orphans = 5
	script := fmt.Sprintf(`for i in $(seq %d); do (sleep 1000 & ); done`, orphans)
	left := exec.Command("nsenter", "--target", strconv.Itoa(first[0]), "--pid", "--mount", "sh", "-c", script)
	if err := left.Run(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphans are children of the first process", func() bool {
		return len(sandbox.Children(first[0])) == len(guardians)+orphans
	})
	for _, child := range sandbox.Children(first[0]) {
		if child != guardians[0] {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	}
	eventually(t, "the first process waits for its orphans", func() bool {
		return len(sandbox.Children(first[0])) == len(guardians)
	})
	if again := sandbox.Children(first[0]); len(again) != 1 || again[0] != guardians[0] {
		t.Errorf("the guardian is %v, want still %v", again, guardians)
	}
}

// So does the server, which the program becomes.
func TestServerAsFirstProcessReapsOrphans(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a namespace of processes: run it as root")
	}
	node := launchProgram(t, "unshare", nil, append([]string{"--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0]},
		newPlace(t).with("serve", "--listen", ":0")...)...)
	node.wantMatch("^serving http://")
	first := sandbox.Children(node.command.Process.Pid)
	if len(first) != 1 {
		t.Fatalf("the namespace has the first processes %v, want one", first)
	}
	const orphans = 5
	left := exec.Command("nsenter", "--target", strconv.Itoa(first[0]), "--pid", "--mount", "sh", "-c", fmt.Sprintf(`for i in $(seq %d); do (sleep 1000 & ); done`, orphans))
	if err := left.Run(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphans are children of the first process", func() bool { return len(sandbox.Children(first[0])) == orphans })
	for _, child := range sandbox.Children(first[0]) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	eventually(t, "the server waits for its orphans", func() bool { return len(sandbox.Children(first[0])) == 0 })
}
