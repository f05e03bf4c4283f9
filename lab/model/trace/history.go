package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/exactly-one/tenure/internal/steps"
)

// Header is the first line of a stored history.
type Header struct {
	Frozen bool          `json:"frozen,omitempty"`
	Blur   time.Duration `json:"blur,omitempty"`
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

// Replay checks a stored history. The checker is valid although a step is not allowed.
func Replay(from io.Reader) (*Checker, error) {
	decoder := json.NewDecoder(from)
	var header Header
	if err := decoder.Decode(&header); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	c := New()
	c.Frozen, c.Blur = header.Frozen, header.Blur
	for {
		var s steps.Step
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			return c, nil
		} else if err != nil {
			return c, fmt.Errorf("read step %d: %w", c.Steps+1, err)
		}
		c.Record(s)
		if err := c.Failure(); err != nil {
			return c, err
		}
	}
}
