//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/internal/steps"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/model/trace"
)

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
	history, err := steplog.Read(b.steps.Name())
	if err != nil {
		return err
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
	steplog.Merge(history)
	var stored bytes.Buffer
	header := steplog.Header{Nodes: true, Server: true, Blur: steplog.Blur}
	if err := steplog.Write(&stored, header, history); err != nil {
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
func createSteps() (*steplog.File, error) {
	file, err := os.CreateTemp("", "tenure-chaos-steps-")
	if err != nil {
		return nil, err
	}
	return openSteps(file.Name())
}

// openSteps opens the file for the steps, which all nodes share.
func openSteps(path string) (*steplog.File, error) {
	return steplog.Open(path, func() time.Duration { return time.Duration(record.Now()) })
}
