package console

import (
	"bufio"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Confirmable reports whether the command can ask for confirmation: the input
// is a terminal and the output is text.
func Confirmable(cmd *cobra.Command, out *Output) bool {
	return !out.JSON() && isTerminal(cmd.InOrStdin())
}

// Confirm asks for confirmation at the terminal. Only yes confirms.
func Confirm(cmd *cobra.Command, out *Output, question string) (bool, error) {
	if err := out.WriteText(Flatten(question) + " [y/N] "); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() { // reading a terminal cannot be interrupted; exits with the program
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

// ConsentFlag is the flag --yes of a destructive command.
type ConsentFlag struct {
	Out *Output
	yes bool
}

// Guard makes the command ask for confirmation before it runs, unless --yes is
// set. Without confirmation it does nothing.
func (f *ConsentFlag) Guard(cmd *cobra.Command, question func(args []string) string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.yes {
			if !Confirmable(cmd, f.Out) {
				return Usage("cannot ask for confirmation here: use --yes to proceed")
			}
			if agreed, err := Confirm(cmd, f.Out, question(args)); err != nil || !agreed {
				return err
			}
		}
		return run(cmd, args)
	}
	cmd.Flags().BoolVar(&f.yes, "yes", false, "proceed without confirmation")
}
