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

// door returns a command of the server. It becomes the server's program.
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

// errItself is returned if the program of the server's name is this program.
var errItself = errors.New("it is this program under another name")

// findServer finds the server's program: beside this one, or else in the PATH.
func findServer() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return exec.LookPath(serverName)
	}
	if target, err := filepath.EvalSymlinks(own); err == nil {
		own = target
	}
	if filepath.Base(own) == serverName { // it would become itself again and again
		return "", errItself
	}
	path, err := exec.LookPath(filepath.Join(filepath.Dir(own), serverName))
	if err != nil {
		path, err = exec.LookPath(serverName) // not in the current folder
	}
	if err == nil && sameFile(own, path) {
		return "", errItself
	}
	return path, err
}

func sameFile(a, b string) bool {
	left, err := os.Stat(a)
	right, errRight := os.Stat(b)
	return err == nil && errRight == nil && os.SameFile(left, right)
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
