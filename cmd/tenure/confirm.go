package main

import (
	"bufio"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// confirmable reports whether there is somebody to ask: a person at a terminal
// who reads text.
func confirmable(cmd *cobra.Command, out *output) bool {
	return !out.json() && isTerminal(cmd.InOrStdin())
}

// confirm asks the person at the terminal. Only yes is an agreement.
func confirm(cmd *cobra.Command, out *output, question string) (bool, error) {
	if err := out.write(flatten(question) + " [y/N] "); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() { // reading a terminal cannot be interrupted; the program ends with it
		line, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		return line == "y" || line == "yes", nil
	case <-cmd.Context().Done():
		return false, cmd.Context().Err()
	}
}

func isTerminal(r any) bool {
	file, ok := r.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// consentFlag guards a command that destroys something.
type consentFlag struct {
	out *output
	yes bool
}

// guard has the command ask before it runs, unless --yes is given. Without an
// agreement it does nothing.
func (f *consentFlag) guard(cmd *cobra.Command, question func(args []string) string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.yes {
			if !confirmable(cmd, f.out) {
				return usage("there is nobody to ask: give --yes to go on")
			}
			if agreed, err := confirm(cmd, f.out, question(args)); err != nil || !agreed {
				return err
			}
		}
		return run(cmd, args)
	}
	cmd.Flags().BoolVar(&f.yes, "yes", false, "go on without asking")
}
