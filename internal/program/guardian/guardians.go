//go:build unix

package guardian

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// liveGuardians are the guardians, and other started processes, not waited for yet. The
// orphans of a killed guardian become children of this process, next to the other
// guardians. The mutex is held while a guardian starts: it must not be mistaken for an
// orphan before its process id is known.
var liveGuardians guardians

type guardians struct {
	mu    sync.Mutex
	known []int // process ids
}

// add starts a guardian and returns the earlier children of this process.
func (g *guardians) add(start func() (pid int, err error)) (before []int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if before, err = children(os.Getpid()); err != nil {
		return nil, fmt.Errorf("list the children of this process: %w", err)
	}
	pid, err := start()
	if err == nil {
		g.known = append(g.known, pid)
	}
	return before, err
}

// remove removes a guardian after the wait for it.
func (g *guardians) remove(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = slices.DeleteFunc(g.known, func(known int) bool { return known == pid })
}

// killOrphans kills all descendants of this process, except other guardians
// with theirs and the foreign children. It reports whether nothing is left.
func (g *guardians) killOrphans(foreign []int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return killOrphans(slices.Concat(foreign, g.known))
}

// orphans returns the processes for killOrphans. With an error, the list may be incomplete.
func (g *guardians) orphans(foreign []int) ([]int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return descendants(os.Getpid(), slices.Concat(foreign, g.known))
}
