package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
)

const passwordLong = `Read a password and print a user of the dashboard with the password's hash, for
[[dashboard.users]] in the configuration file of tenure serve. At a terminal, ask for the
password twice and do not show it. Otherwise read the first line of the standard input.

The hash is argon2id: each check of a password takes 19 MiB, and tenure serve makes at
most two checks at a time.`

// The sizes of a password, in bytes.
const (
	minPassword = 16
	maxPassword = 1024
)

// passwordRecord is a user with a hashed password.
type passwordRecord struct {
	Name         string `json:"name"`
	Access       string `json:"access"`
	PasswordHash string `json:"password_hash"`
}

func newPassword(out *console.Output) *cobra.Command {
	access := "viewer"
	cmd := &cobra.Command{
		Use: "password USER", Short: "Hash the password of a user of the dashboard", Long: passwordLong,
		Example: "  tenure serve password anna --access operator\n  head -c 18 /dev/urandom | base64 | tee secret | tenure serve password monitoring",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage("%s takes one user, but got %d", cmd.CommandPath(), len(args))
			}
			if access != "viewer" && access != "operator" {
				return console.Usage("--access is %q; it must be viewer or operator", access)
			}
			if err := checkUser(args[0], strings.Repeat("x", minPassword)); err != nil {
				return err
			}
			password, err := readPassword(cmd)
			if err != nil {
				return err
			}
			made := passwordRecord{args[0], access, passwordhash.New(password)}
			return out.Print(made, "[[dashboard.users]]", "name = "+config.Quote(made.Name), "access = "+config.Quote(access), "password_hash = "+config.Quote(made.PasswordHash))
		},
	}
	cmd.Flags().StringVar(&access, "access", access, "what the user may do: viewer or operator")
	return cmd
}

// readPassword reads a password from a terminal, without showing it, or else the first
// line of the input.
func readPassword(cmd *cobra.Command) (string, error) {
	password := ""
	input, isFile := cmd.InOrStdin().(*os.File)
	if isFile && term.IsTerminal(int(input.Fd())) {
		for i, prompt := range []string{"Password: ", "Again: "} {
			text, err := readHidden(cmd.Context(), input, cmd.ErrOrStderr(), prompt)
			switch {
			case err != nil:
				return "", err
			case i > 0 && text != password:
				return "", console.Usage("the passwords differ: run the command again")
			}
			password = text
		}
	} else {
		line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), maxPassword+2)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		password = strings.TrimRight(line, "\r\n")
	}
	switch {
	case len(password) < minPassword:
		return "", console.Usage("the password has %d bytes; it must have at least %d", len(password), minPassword)
	case len(password) > maxPassword:
		return "", console.Usage("the password must have at most %d bytes", maxPassword)
	default:
		return password, nil
	}
}

// readHidden reads a line from a terminal without showing it. If the context ends first,
// the terminal is as before.
func readHidden(ctx context.Context, terminal *os.File, prompts io.Writer, prompt string) (string, error) {
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		return "", fmt.Errorf("read the terminal's state: %w", err)
	}
	_, _ = io.WriteString(prompts, prompt) // the terminal is read anyway
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() { // reading a terminal cannot be interrupted; exits with the program
		text, err := term.ReadPassword(int(terminal.Fd()))
		read <- result{text, err}
	}()
	defer func() { _, _ = io.WriteString(prompts, "\n") }()
	select {
	case line := <-read:
		if line.err != nil {
			return "", fmt.Errorf("read the password: %w", line.err)
		}
		return string(line.text), nil
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(int(terminal.Fd()), before))
	}
}
