//go:build unix

package guardian

import (
	"os"
	"slices"
	"sync"
)

// living are the guardians of this process that have not been waited for. What
// comes to this process from a guardian that was killed lies beside them and must
// be told from them. The mutex is held while one is started: it must not be taken
// for an orphan before its number is known.
var living guardians

type guardians struct {
	mu    sync.Mutex
	known []int // by process id
}

// add starts a guardian and returns what children this process had before.
func (g *guardians) add(start func() (pid int, err error)) (before []int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = children(os.Getpid())
	pid, err := start()
	if err == nil {
		g.known = append(g.known, pid)
	}
	return before, err
}

// remove forgets a guardian that was waited for.
func (g *guardians) remove(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = slices.DeleteFunc(g.known, func(known int) bool { return known == pid })
}

// killOrphans kills everything below this process but what other guardians guard
// and some other children. It reports whether nothing else is left.
func (g *guardians) killOrphans(foreign []int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return killOrphans(slices.Concat(foreign, g.known))
}

// orphans are what killOrphans kills.
func (g *guardians) orphans(foreign []int) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return descendants(os.Getpid(), slices.Concat(foreign, g.known))
}
