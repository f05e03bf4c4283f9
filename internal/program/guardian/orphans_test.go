//go:build linux

package guardian

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What reaps orphans leaves the exit codes of this process's own children to those who
// wait for them, also if these wait late.
func TestReapingLeavesOwnChildrenAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var reaping sync.WaitGroup
	for range 2 {
		reaping.Go(func() { ReapOrphans(ctx) })
	}
	defer reaping.Wait()
	defer cancel()
	for i := range 100 {
		c := exec.Command("/bin/sh", "-c", "exit 7")
		waited, err := StartChild(c)
		if err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 { // the reaper sees the end first
			for limit := time.Now().Add(patience); !zombie(c.Process.Pid); {
				if time.Now().After(limit) {
					t.Fatal("the child does not end")
				}
			}
			liveGuardians.reapOrphans()
		}
		err = c.Wait()
		waited()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Fatalf("the end of child %d is %v, want exit code 7: its status was stolen", i, err)
		}
	}
}

// zombie reports whether a child has ended and was not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
