package sandbox

import (
	"fmt"
	"io"
	"os/exec"
)

// Caretaker is a shell script that cleans up for this process, in a separate
// process, because a process that is killed can clean up nothing. The script reads its
// standard input: that ends when the owner closes the caretaker or dies.
type Caretaker struct {
	command  *exec.Cmd
	lifeline io.WriteCloser
}

// NewCaretaker starts a script with its arguments, $1 and the next. It runs as the
// user of this process, and an interrupt at the terminal does not reach it.
func NewCaretaker(script string, arguments ...string) (*Caretaker, error) {
	c := &Caretaker{command: exec.Command("/bin/sh", append([]string{"-c", script, "caretaker"}, arguments...)...)}
	c.command.Dir = "/"
	(*account)(nil).run(c.command)
	var err error
	if c.lifeline, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, fmt.Errorf("start the caretaker: %w", err)
	}
	return c, nil
}

// Write gives the script text to read. An error means that the caretaker is gone.
func (c *Caretaker) Write(text []byte) (int, error) { return c.lifeline.Write(text) }

// Close has the script clean up and waits for its end. It may be called once.
func (c *Caretaker) Close() error {
	closed := c.lifeline.Close()
	if err := c.command.Wait(); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return closed
}
