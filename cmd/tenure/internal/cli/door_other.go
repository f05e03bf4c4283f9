//go:build !unix

package cli

import (
	"errors"
	"os"
	"os/exec"

	"github.com/exactly-one/tenure/internal/program/console"
)

// become runs another program in place of this one.
func become(path string, args []string) error {
	command := exec.Command(path, args[1:]...)
	command.Args[0] = args[0]
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	switch err := command.Run(); {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		return console.Usage("cannot start %s: %w", path, err)
	}
	return nil
}
