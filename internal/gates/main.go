package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(2)
	case errors.Is(err, errFailed): // it was printed
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

const usage = "gates [-args='-count=1'] [-record] check | test | deep [SLICE...] | turn | compare | list [json] | table"

// command is the program, but for its end.
func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gates", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	further := flags.String("args", "", "further `flags` of go test, separated by spaces")
	record := flags.Bool("record", false, "write the times to the table of CONTRIBUTING.md")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return fmt.Errorf("%w: %s", errUsage, usage)
	}
	root, err := repository()
	if err != nil {
		return err
	}
	if testsOfRepository, err = allTests(root); err != nil {
		return err
	}
	r := &runner{root: root, out: out, args: strings.Fields(*further), took: map[string]time.Duration{}, limit: stepLimit}
	err = r.perform(ctx, flags.Arg(0), flags.Args()[1:])
	if *record && len(r.took) > 0 {
		err = errors.Join(err, r.writeTimes())
	}
	return err
}

// perform does what the arguments name.
func (r *runner) perform(ctx context.Context, verb string, names []string) error {
	if len(names) > 0 && verb != "deep" && verb != "list" {
		return fmt.Errorf("%w: %s takes no argument", errUsage, verb)
	}
	switch verb {
	case check.name:
		return r.runAll(ctx, []part{check})
	case quick.name:
		return r.runAll(ctx, []part{quick})
	case "deep":
		chosen, err := choose(names)
		if err != nil {
			return err
		}
		return r.runAll(ctx, chosen)
	case "turn":
		commits, err := r.commits(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(r.out, turn(commits).name)
		return nil
	case "compare":
		return r.compare(ctx)
	case "table":
		return r.writeTimes()
	case "list":
		if slices.Equal(names, []string{"json"}) {
			return json.NewEncoder(r.out).Encode(namesOf(deep))
		}
		for _, p := range slices.Concat([]part{quick, check}, deep) {
			fmt.Fprintf(r.out, "%-22s %s\n", p.name, p.proves)
		}
		return nil
	}
	return fmt.Errorf("%w: there is no %q: %s", errUsage, verb, usage)
}

// runAll runs parts one after the other. After several, it prints their lines again.
func (r *runner) runAll(ctx context.Context, parts []part) error {
	failed := map[string]bool{}
	var errs []error
	for _, p := range parts {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := r.run(ctx, p)
		failed[p.name] = err != nil
		errs = append(errs, err)
	}
	if len(parts) > 1 {
		fmt.Fprintln(r.out)
		for _, p := range parts {
			verdict, again := "ok", ""
			if failed[p.name] {
				verdict, again = "FAILED", "   again: "+p.again()
			}
			fmt.Fprintf(r.out, "%-6s %-22s %4.0f s%s\n", verdict, p.name, r.took[p.name].Seconds(), again)
		}
	}
	return errors.Join(errs...)
}

// choose returns the slices with the names, all of them if there are none.
func choose(names []string) ([]part, error) {
	if len(names) == 0 {
		return deep, nil
	}
	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(deep, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: there is no slice %q; slices: %s", errUsage, name, strings.Join(namesOf(deep), " "))
		}
		chosen = append(chosen, deep[i])
	}
	return chosen, nil
}

func namesOf(parts []part) []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// turn returns the slice whose turn it is after so many commits.
func turn(commits int) part { return deep[commits%len(deep)] }

// commits counts the commits of the repository.
func (r *runner) commits(ctx context.Context) (int, error) {
	command := exec.CommandContext(ctx, "git", "rev-list", "--count", "HEAD")
	command.Dir = r.root
	text, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("git rev-list: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// repository returns the root of the repository, which holds the working directory.
func repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, ".ci")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("no folder .ci above the working directory")
		}
		folder = parent
	}
}
