// Package steplog stores the steps of the models in lab/model, which the engine emits in
// tests: of a process in a file, and of an installation in a history. Package
// lab/model/trace checks histories.
package steplog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

// Blur is how far apart the times of two steps may be that happened in their order.
const Blur = time.Millisecond

// Header is the first line of a stored history.
type Header struct {
	Frozen bool          `json:"frozen,omitempty"`
	Blur   time.Duration `json:"blur,omitempty"`

	// Nodes says that the history has the steps of nodes and agents only.
	Nodes bool `json:"nodes,omitempty"`

	// Server says that a history of nodes also has what was seen of a real server.
	Server bool `json:"server,omitempty"`
}

// Write stores a history: a header, then one step on a line.
func Write(to io.Writer, header Header, history []steps.Step) error {
	encoder := json.NewEncoder(to)
	err := encoder.Encode(header)
	for _, s := range history {
		if err == nil {
			err = encoder.Encode(s)
		}
	}
	return err
}

// Merge sorts the steps of several nodes.
func Merge(history []steps.Step) {
	slices.SortStableFunc(history, func(a, b steps.Step) int { return cmp.Compare(a.At, b.At) })
}

// File appends steps to a file, which several processes may share. A killed process loses
// none: each step is one write. It implements [steps.Recorder].
type File struct {
	file  *os.File
	began time.Time     // with a monotonic reading, which times of steps are compared with
	at    time.Duration // the same on the clock of the history, within CloseEnough
}

// CloseEnough is how far times of two processes may be wrong.
const CloseEnough = 100 * time.Microsecond

// Open opens a file. clock is one that all processes share.
func Open(path string, clock func() time.Duration) (*File, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	f := &File{file: file}
	for f.at == 0 || time.Since(f.began) > CloseEnough {
		f.began, f.at = time.Now(), clock()
	}
	return f, err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Name returns the path.
func (f *File) Name() string { return f.file.Name() }

// Record implements [steps.Recorder].
func (f *File) Record(s steps.Step) {
	if s.Clock.Wall.IsZero() {
		s.Clock.Wall = time.Now()
	}
	s.At = f.at + s.Clock.Wall.Sub(f.began)
	if s.Kind == steps.GetsAnswer {
		s.Trust = s.Left()
	}
	line, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has numbers and texts only
	}
	_, _ = f.file.Write(append(line, '\n')) // a short line makes the replay fail
}

// Read reads the steps of a file, without a last line that a process still writes.
func Read(path string) (history []steps.Step, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var s steps.Step
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			return history, nil
		} else if err != nil {
			return nil, err
		}
		history = append(history, s)
	}
}
