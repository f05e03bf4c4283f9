package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// root is the repository's root, as the Makefile runs the program.
const root = "../.."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(exitCode(err))
	}
}

// usageError is a command line that cannot be followed.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitCode is 2 for a command line that cannot be followed, and 1 for other
// failures.
func exitCode(err error) int {
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		return usagef("no command: use check, tidy or tag")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	folder := flags.String("root", root, "the repository")
	version := flags.String("version", "", "the version, such as v0.1.0")
	write := flags.Bool("write", false, "tidy: write what differs")
	commit := flags.Bool("commit", false, "tag: change files, commit and tag, instead of printing what would be done")
	platforms := flags.String("targets", "", "tag: the platforms to build for in a dry run, such as linux/amd64,windows/arm64 (default all)")
	if err := flags.Parse(args[1:]); err != nil {
		return usageError{err}
	}
	switch args[0] {
	case "check":
		return check(ctx, out, *folder, *version)
	case "tidy":
		return tidy(ctx, out, *folder, *write)
	case "tag":
		targets, err := parseTargets(*platforms)
		if err != nil {
			return err
		}
		if *commit && *platforms != "" {
			return usagef("-targets is for dry runs: a release has all platforms")
		}
		return release{*folder, *version, *commit, targets}.tag(ctx, out)
	default:
		return usagef("unknown command %q: use check, tidy or tag", args[0])
	}
}
