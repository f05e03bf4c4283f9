// Command consulbuild builds the program consul from its Go module, for the tests that
// run the commands of docs/coming-from/consul.md:
//
//	go run ./lab/consulbuild bin/consul
//
// The modules are downloaded once, which takes a minute or two; the build takes some
// minutes and 1 GB of Go's build cache. The version has a free license. It is built
// with newer versions of two modules, since those that it requires do not compile with
// this Go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

const program = "github.com/hashicorp/consul"

var modules = []string{program + "@v1.13.9", "golang.org/x/sys@v0.50.0", "golang.org/x/net@v0.62.0"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := errors.New("usage: consulbuild FILE")
	if len(os.Args) == 2 {
		err = build(ctx, os.Args[1])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "consulbuild:", err)
		os.Exit(1)
	}
}

// build builds consul as a file, by way of a module that requires it.
func build(ctx context.Context, file string) (err error) {
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "consulbuild-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	for _, args := range [][]string{
		{"mod", "init", "consulbuild"},
		append([]string{"get"}, modules...),
		// A module that consul requires uses internal functions of the runtime.
		{"build", "-mod=mod", "-ldflags=-w -checklinkname=0", "-o", file, program},
	} {
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir, command.Env = directory, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("go %q: %w\n%s", args, err, output)
		}
	}
	return nil
}
