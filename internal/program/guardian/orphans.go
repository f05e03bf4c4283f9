//go:build unix

package guardian

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// reapEvery is the longest time between two looks for orphans: one signal can represent
// several ends.
const reapEvery = 5 * time.Second

// ReapOrphans waits for ended children of this process, until ctx ends, unless this
// process started them: the first process of a container gets every orphan of the
// container as a child. It leaves guardians, and commands of [StartChild], to their
// callers.
func ReapOrphans(ctx context.Context) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	defer signal.Stop(ends)
	regular := time.NewTicker(reapEvery)
	defer regular.Stop()
	for {
		liveGuardians.reapOrphans()
		select {
		case <-ends:
		case <-regular.C:
		case <-ctx.Done():
			return
		}
	}
}

// StartChild starts a command. It is no orphan for [ReapOrphans], and is not killed with
// the orphans of a guardian. The caller calls waited after c.Wait.
func StartChild(c *exec.Cmd) (waited func(), err error) {
	_, err = liveGuardians.add(func() (int, error) {
		if err := c.Start(); err != nil {
			return 0, err
		}
		return c.Process.Pid, nil
	})
	if err != nil {
		return nil, err
	}
	return func() { liveGuardians.remove(c.Process.Pid) }, nil
}

// reapOrphans waits for ended children not started by this process.
func (g *guardians) reapOrphans() {
	g.mu.Lock()
	defer g.mu.Unlock()
	found, _ := children(os.Getpid()) // the next call finds the rest
	for _, child := range found {
		if !slices.Contains(g.known, child) {
			_, _ = syscall.Wait4(child, nil, syscall.WNOHANG, nil) // it may still live
		}
	}
}
