// Package tail keeps the end of what a command writes.
package tail

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Tail hands on what is written to its file and keeps the end of it.
type Tail struct {
	next io.Writer
	most int // bytes

	read, write *os.File
	reading     sync.WaitGroup

	kept []byte // the last most bytes, or up to twice as many
	cut  bool   // whether there was more
}

// Start makes a tail that hands on to next and keeps a number of bytes. The caller
// closes it.
func Start(next io.Writer, most int) (*Tail, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &Tail{next: next, most: most, read: read, write: write}
	t.reading.Go(t.follow)
	return t, nil
}

// File is what is to be written to.
func (t *Tail) File() *os.File { return t.write }

// follow reads until all writers have closed the pipe, or until a deadline.
func (t *Tail) follow() {
	for buffer := make([]byte, 4096); ; {
		n, err := t.read.Read(buffer)
		t.keep(buffer[:n])
		_, _ = t.next.Write(buffer[:n]) // a command must not fail because its output cannot be written
		if err != nil {
			return
		}
	}
}

func (t *Tail) keep(words []byte) {
	t.kept = append(t.kept, words...)
	if excess := len(t.kept) - t.most; excess > t.most {
		t.kept, t.cut = append(t.kept[:0], t.kept[excess:]...), true
	}
}

// patience is how long processes that escaped may keep the file open.
const patience = time.Second

// Close waits until what was written is read, and returns the end of it: whole
// lines, as far as they fit.
func (t *Tail) Close() (string, error) {
	err := errors.Join(t.write.Close(), t.read.SetReadDeadline(time.Now().Add(patience)))
	t.reading.Wait()
	err = errors.Join(err, t.read.Close())
	last := t.kept
	if excess := len(last) - t.most; excess > 0 {
		last, t.cut = last[excess:], true
	}
	if line := bytes.IndexByte(last, '\n'); t.cut && line >= 0 && line < len(last)-1 {
		last = last[line+1:]
	}
	return strings.TrimSpace(string(last)), err
}
