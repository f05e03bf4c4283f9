// Package tail keeps the end of a command's output.
package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Tail hands on the writes to its file and keeps the end of them.
type Tail struct {
	next io.Writer
	most int // bytes

	read, write *os.File
	ended       chan struct{} // closed when nothing more is read

	mu   sync.Mutex
	kept []byte // the last most bytes, or up to twice as many; guarded by mu
	cut  bool   // whether there was more; guarded by mu
}

// Start makes a tail. It hands on to next and keeps a number of bytes. The caller closes
// it.
func Start(next io.Writer, most int) (*Tail, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &Tail{next: next, most: most, read: read, write: write, ended: make(chan struct{})}
	go t.follow() // exits after Close, when next has taken what it was handed
	return t, nil
}

// File is the file to write to.
func (t *Tail) File() *os.File { return t.write }

// follow reads until all writers have closed the pipe, or until a deadline.
func (t *Tail) follow() {
	defer close(t.ended)
	for buffer := make([]byte, 4096); ; {
		n, err := t.read.Read(buffer)
		if n > 0 {
			t.keep(buffer[:n])
			_, _ = t.next.Write(buffer[:n]) // a command must not fail because its output cannot be written
		}
		if err != nil {
			return
		}
	}
}

func (t *Tail) keep(words []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, words...)
	if excess := len(t.kept) - t.most; excess > t.most {
		t.kept, t.cut = append(t.kept[:0], t.kept[excess:]...), true
	}
}

// patience is how long escaped processes may keep the file open, and how long the
// receiver may then take for the last words.
const patience = time.Second

// Close waits until all writes are read and handed on, but not for a receiver that takes
// nothing. It returns the end of the output: whole lines, as far as they fit.
func (t *Tail) Close() (string, error) {
	err := errors.Join(t.write.Close(), t.read.SetReadDeadline(time.Now().Add(patience)))
	select {
	case <-t.ended:
	case <-time.After(2 * patience):
		err = errors.Join(err, fmt.Errorf("hand on the output: %w", os.ErrDeadlineExceeded))
	}
	err = errors.Join(err, t.read.Close())
	t.mu.Lock()
	defer t.mu.Unlock()
	last, cut := t.kept, t.cut
	if excess := len(last) - t.most; excess > 0 {
		last, cut = last[excess:], true
	}
	if line := bytes.IndexByte(last, '\n'); cut && line >= 0 && line < len(last)-1 {
		last = last[line+1:]
	}
	return strings.TrimSpace(string(last)), err
}
