package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Transcript is what happened, in order: the fake time since the start, who,
// and what. It keeps the last entries only.
type Transcript struct {
	keep int

	mu      sync.Mutex
	entries []entry // a ring once it is full
	total   int     // entries ever added
	frozen  bool
}

type entry struct {
	at     time.Duration
	actor  string
	format string
	args   []any
}

func (e entry) String() string {
	return fmt.Sprintf("%12.6f  %-8s %s", e.at.Seconds(), e.actor, fmt.Sprintf(e.format, e.args...))
}

// newTranscript returns a transcript of the last keep entries.
func newTranscript(keep int) *Transcript { return &Transcript{keep: keep} }

// add appends an entry. It is formatted only when it is printed: the arguments
// must be values that do not change.
func (t *Transcript) add(at time.Duration, actor, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozen {
		return
	}
	e := entry{at, actor, format, args}
	if len(t.entries) < t.keep {
		t.entries = append(t.entries, e)
	} else {
		t.entries[t.total%t.keep] = e
	}
	t.total++
}

// freeze ends the recording: later entries are dropped.
func (t *Transcript) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

// Len returns how many entries were ever added.
func (t *Transcript) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Since returns the entries from number mark on, as far as they are kept.
func (t *Transcript) Since(mark int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for i := max(mark, t.total-len(t.entries)); i < t.total; i++ {
		lines = append(lines, t.entries[i%t.keep].String())
	}
	return lines
}

// String returns everything that is kept, one entry a line.
func (t *Transcript) String() string { return strings.Join(t.Since(0), "\n") }
