package main

import (
	"context"
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
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: use check, tidy or tag")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	folder := flags.String("root", root, "the repository")
	version := flags.String("version", "", "the version, such as v0.1.0")
	write := flags.Bool("write", false, "tidy: write what differs")
	commit := flags.Bool("commit", false, "tag: change files, commit and tag, instead of printing what would be done")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "check":
		return check(ctx, out, *folder, *version)
	case "tidy":
		return tidy(ctx, out, *folder, *write)
	case "tag":
		return tag(ctx, out, *folder, *version, *commit)
	default:
		return fmt.Errorf("unknown command %q: use check, tidy or tag", args[0])
	}
}
