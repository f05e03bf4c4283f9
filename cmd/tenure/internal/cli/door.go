package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/exactly-one/tenure/internal/program/connect"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/version"
)

// serverName is the program that serves the dashboard and evaluates alerts.
const serverName = "tenure-server"

// door returns a command of the server, which becomes that program.
func door(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Long: short + ". The program " + serverName + " does it, from the folder of this program or from the PATH.",
		DisableFlagParsing: true,
		PersistentPreRunE:  func(*cobra.Command, []string) error { return nil }, // the server reads the configuration
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := findServer()
			if err != nil {
				return console.Usage("tenure %s is part of the program %s, which is neither beside this program nor in the PATH: install it with go install github.com/exactly-one/tenure/server/%s@%s, or from the same package",
					name, serverName, serverName, release())
			}
			return become(path, append([]string{"tenure", name}, args...))
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			path, err := findServer()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeServer(cmd.Context(), path, append(append([]string{name}, args...), begun))
		},
	}
}

// findServer finds the server's program: beside this one, or else in the PATH.
func findServer() (string, error) {
	if own, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(own); err == nil {
			own = target
		}
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), serverName)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(serverName)
	if errors.Is(err, exec.ErrDot) {
		return "", err // a program of the current folder is not trusted
	}
	return path, err
}

// release is the version to install: this program's, unless it was built from other sources.
func release() string {
	if v := version.Read().Version; v != "" && v != "(devel)" && v != "devel" {
		return v
	}
	return "latest"
}

// completeServer asks the server's program how to complete a word.
func completeServer(ctx context.Context, path string, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, 2*connect.CompletionTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, append([]string{"__complete"}, args...)...)
	command.WaitDelay = connect.CompletionTimeout
	output, err := command.Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(directive)
}
