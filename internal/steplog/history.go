package steplog

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

const (
	// folderVariable names the folder for histories. Without it, nothing is recorded.
	folderVariable = "TENURE_TEST_STEPS"
	// fileVariable names the file of a child.
	fileVariable = "TENURE_TEST_STEPS_FILE"
)

// History is the history of one installation in a test, whose nodes are in this process and
// in children. Its methods may be called from several goroutines.
type History struct {
	t      testing.TB
	path   string    // where it is stored; empty if nothing is recorded
	folder string    // of the files of processes
	own    *File     // of this process
	ended  sync.Once // the history

	mu   sync.Mutex
	over bool
	dead map[string]bool // by file of a child: its process has ended
	// excuses are steps that allow what the guarantees allow.
	excuses []steps.Step
}

// New begins a history. It is stored when the test ends, unless End was called before.
func New(t testing.TB) *History {
	t.Helper()
	h := &History{t: t, dead: map[string]bool{}}
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return h
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	h.folder = t.TempDir()
	h.path = filepath.Join(folder, regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-")+"-"+filepath.Base(h.folder)+".json")
	var err error
	if h.own, err = Open(filepath.Join(h.folder, "own"), now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.End)
	return h
}

// now is the wall clock: a test does not set the clock of its machine.
func now() time.Duration { return time.Duration(time.Now().UnixNano()) }

// Record implements [steps.Recorder].
func (h *History) Record(s steps.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.own.Record(s)
	}
}

// Of returns a context whose node emits its steps.
func (h *History) Of(ctx context.Context) context.Context {
	if h.path == "" {
		return ctx
	}
	return steps.With(ctx, h)
}

// Child returns what the environment of a child must have, and a function to call when its
// process has ended.
func (h *History) Child() (env []string, ended func()) {
	if h.path == "" {
		return nil, func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	path := filepath.Join(h.folder, "child"+strconv.Itoa(len(h.dead)))
	h.dead[path] = false
	return []string{fileVariable + "=" + path}, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.dead[path] = true
	}
}

// Recording is Of in a child.
func Recording(ctx context.Context) context.Context {
	path := os.Getenv(fileVariable)
	if path == "" {
		return ctx
	}
	file, err := Open(path, now)
	if err != nil {
		panic(err)
	}
	return steps.With(ctx, file)
}

// Excuse allows what the guarantees allow when a session is ended from outside: from now
// until the returned function is called, or the history ends.
func (h *History) Excuse() (over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.excuses)
	h.excuses = append(h.excuses, steps.Step{Kind: steps.ClockSteps, At: now(), Excuse: time.Hour})
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.excuses[i].Excuse = now() - h.excuses[i].At
	}
}

// End ends the history and stores it. What happens later is not judged.
func (h *History) End() {
	h.ended.Do(func() {
		if h.path == "" {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.over = true
		if err := h.storeLocked(); err != nil {
			h.t.Error(err)
		}
	})
}

func (h *History) storeLocked() error {
	history, err := Read(filepath.Join(h.folder, "own"))
	if err != nil {
		return err
	}
	for path, dead := range h.dead {
		child, err := Read(path)
		switch {
		case os.IsNotExist(err): // it is no node, or has not opened one
			continue
		case err != nil:
			return err
		case dead:
			child = append(child, deaths(child)...)
		}
		history = append(history, child...)
	}
	if len(history) == 0 {
		return nil
	}
	history = append(slices.Clone(h.excuses), history...)
	Merge(history)
	file, err := os.Create(h.path)
	if err != nil {
		return err
	}
	defer file.Close()
	return Write(file, Header{Nodes: true, Blur: Blur}, history)
}

// deaths returns the death of each node of a process, right after its last step.
func deaths(history []steps.Step) (dies []steps.Step) {
	var nodes []string
	last := time.Duration(0)
	for _, s := range history {
		last = max(last, s.At)
		if s.Node != "" && !slices.Contains(nodes, s.Node) {
			nodes = append(nodes, s.Node)
		}
	}
	for _, node := range nodes {
		dies = append(dies, steps.Step{Kind: steps.Dies, At: last + 1, Node: node})
	}
	return dies
}
