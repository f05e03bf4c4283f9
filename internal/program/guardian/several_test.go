//go:build linux

package guardian

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Several commands run at the same time. When the guardian of one is killed,
// all of its processes die and none of the others, whichever started first.
func TestConcurrentCommandsAreIndependent(t *testing.T) {
	const script = `trap '' TERM; sh -c 'setsid sh -c "echo \$\$ > last; sleep 60; :" & :'; sleep 60; :`
	for victim := range 3 {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			var runs []*run
			var last []int
			for range 3 {
				r := begin(t, newTerm(t, time.Hour), script)
				runs, last = append(runs, r), append(last, r.file("last"))
			}
			runs[victim].signalGuardian(syscall.SIGKILL)
			runs[victim].want(End{Code: 128 + int(syscall.SIGKILL), Stopped: true, GuardianLost: true})
			for i, r := range runs {
				if i == victim {
					r.dead(r.pid)
					r.dead(last[i])
					continue
				}
				for _, pid := range []int{r.pid, last[i]} {
					if err := syscall.Kill(pid, 0); err != nil {
						t.Errorf("process %d of command %d died with command %d: %v", pid, i, victim, err)
					}
				}
			}
		})
	}
}

// A guardian that is just starting is not treated as an orphan of another one.
func TestStartingGuardianIsNotAnOrphan(t *testing.T) {
	for range 10 {
		victim := begin(t, newTerm(t, time.Hour), `sleep 60; :`)
		guardian, err := parentOf(victim.pid)
		if err != nil {
			t.Fatal(err)
		}
		killed := make(chan error, 1)
		go func() { killed <- syscall.Kill(guardian, syscall.SIGKILL) }()
		for range 3 {
			begin(t, newTerm(t, time.Hour), `exit 6`).want(End{Code: 6})
		}
		if err := <-killed; err != nil {
			t.Error(err)
		}
		victim.wait()
	}
}

// The command's standard error goes to the given file.
func TestStderrGoesToGivenFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	begin(t, newTerm(t, time.Hour), `echo oh no >&2; exit 2`, func(c *Command) { c.Stderr = file }).want(End{Code: 2})
	if text, err := os.ReadFile(file.Name()); string(text) != "oh no\n" {
		t.Errorf("%q, %v", text, err)
	}
}
