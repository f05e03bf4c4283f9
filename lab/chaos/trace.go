//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/model/trace"
)

// blur is how far apart the times of two steps may be that happened in their order.
const blur = time.Millisecond

// stepFile appends steps to a file, which all nodes share. A killed process loses none:
// each step is one write.
type stepFile struct {
	file  *os.File
	began time.Time     // with a monotonic reading, which times of steps are compared with
	at    time.Duration // the same on CLOCK_MONOTONIC, within closeEnough
}

const closeEnough = 100 * time.Microsecond

func openSteps(path string) (*stepFile, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	f := &stepFile{file: file}
	for f.at == 0 || time.Since(f.began) > closeEnough {
		f.began, f.at = time.Now(), time.Duration(record.Now())
	}
	return f, err
}

// Record implements steps.Recorder.
func (f *stepFile) Record(s steps.Step) {
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

// dies records that the process of a node has ended.
func (b *bed) dies(node uuid.UUID) {
	if node != uuid.Nil {
		b.steps.Record(steps.Step{Kind: steps.Dies, Node: node.String()})
	}
}

// replay checks the steps of the nodes and what was seen of the server, and keeps them if the
// models do not allow one. Without the server's log, a new leader is no fault while faults
// end sessions on the server's side.
func (b *bed) replay() error {
	text, err := os.ReadFile(b.steps.file.Name())
	if err != nil {
		return err
	}
	var history []steps.Step
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var s steps.Step
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		history = append(history, s)
	}
	excused := []string{"clock-jump", "terminate-sessions", "reset"}
	if b.server != nil { // its log shows which sessions ended
		excused = excused[:1]
	}
	for _, f := range b.history.Faults {
		if slices.Contains(excused, f.Kind) {
			history = append(history, steps.Step{Kind: steps.ClockSteps, At: time.Duration(f.From), Excuse: time.Duration(f.To-f.From) + b.lease})
		}
	}
	seen, unseen, err := b.moments()
	if err != nil {
		return err
	}
	history = withoutDead(append(history, seen...))
	trace.Merge(history)
	var stored bytes.Buffer
	header := trace.Header{Nodes: true, Server: true, Blur: blur, Lease: b.lease, Margin: b.lease / marginFraction}
	if err := trace.Write(&stored, header, history); err != nil {
		return err
	}
	c, err := trace.Replay(bytes.NewReader(stored.Bytes()))
	if c != nil {
		fmt.Printf("%d steps were replayed; %d sessions left the models\n", c.Steps, c.Outside)
		fmt.Printf("of the server: %s; %d begins and ends have no certain time\n", summary(c.Seen), unseen)
	}
	if err != nil {
		kept := filepath.Join(os.TempDir(), "tenure-chaos-steps.json")
		err = errors.Join(fmt.Errorf("the models do not allow a step, see %s: %w", kept, err), os.WriteFile(kept, stored.Bytes(), 0o600))
	}
	return err
}

// createSteps creates the file for the steps.
func createSteps() (*stepFile, error) {
	file, err := os.CreateTemp("", "tenure-chaos-steps-")
	if err != nil {
		return nil, err
	}
	return openSteps(file.Name())
}
