package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/guardian"
)

// The limits of a password command.
const (
	passwordTimeout = 10 * time.Second
	maxPassword     = 64 << 10 // bytes of output
)

// PasswordCommand returns a function that runs a shell command and returns its line of
// output. Errors say how the command ended, without its output.
func PasswordCommand(command string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		output, err := runPasswordCommand(ctx, command)
		if err != nil {
			return "", fmt.Errorf("the password command %w", err)
		}
		password := strings.TrimSuffix(strings.TrimSuffix(output, "\n"), "\r")
		switch {
		case password == "":
			return "", errors.New("the password command printed nothing")
		case strings.ContainsAny(password, "\n\x00"):
			return "", errors.New("the password command must print one line")
		}
		return password, nil
	}
}

func runPasswordCommand(ctx context.Context, command string) (output string, err error) {
	limited, cancel := context.WithTimeout(ctx, passwordTimeout)
	defer cancel()
	c := shell(limited, command)
	c.WaitDelay = time.Second // for descendants with the output still open
	printed := &capped{}
	c.Stdout = printed
	waited, err := guardian.StartChild(c)
	if err == nil {
		err = c.Wait()
		waited()
	}
	endGroup(c)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("was interrupted: %w", context.Cause(ctx))
	case limited.Err() != nil:
		return "", fmt.Errorf("took longer than %v: %w", passwordTimeout, limited.Err())
	case errors.As(err, &exit):
		return "", fmt.Errorf("failed: %s", exit.ProcessState)
	case err != nil:
		return "", fmt.Errorf("failed: %w", err)
	case printed.full:
		return "", fmt.Errorf("printed more than %d bytes", maxPassword)
	}
	return printed.kept.String(), nil
}

// capped keeps the first bytes of an output.
type capped struct {
	kept bytes.Buffer
	full bool
}

func (c *capped) Write(b []byte) (int, error) {
	if c.kept.Len()+len(b) > maxPassword {
		c.full = true
		return len(b), nil
	}
	return c.kept.Write(b)
}
