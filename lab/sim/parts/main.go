// Command parts runs many simulated schedules in parts, on every processor, and
// keeps what they found in a file, so that a run that was interrupted continues:
//
//	go run ./lab/sim/parts -n 1000000 -state sim.json -page docs/reference/tested-with.md
//
// A run begins anew when the code has changed since the last part, unless -keep.
// The exit code is 1 if a schedule has violated an invariant.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// command runs the parts that are missing.
func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("parts", flag.ExitOnError)
	count := flags.Uint64("n", 2000, "how many schedules")
	seed := flags.Uint64("seed", 1, "the seed of the first schedule")
	size := flags.Uint64("part", 10_000, "how many schedules are one part")
	path := flags.String("state", "", "the file that keeps what was found; without it, nothing is kept")
	keep := flags.Bool("keep", false, "continue also after a change of the code")
	page := flags.String("page", "", "the document in which the result is stated")
	processes := flags.Uint64("j", uint64(runtime.GOMAXPROCS(0)), "how many processes run at the same time")
	_ = flags.Parse(args) // it exits
	if flags.NArg() > 0 || *size == 0 || *processes == 0 {
		return errors.New("usage: parts [-n N] [-seed N] [-part N] [-state FILE] [-keep] [-page FILE] [-j N]")
	}

	folder, err := os.MkdirTemp("", "tenure-sim")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p, err := build(ctx, folder)
	if err != nil {
		return err
	}
	s, err := load(*path, p.hash, *seed, *keep)
	switch {
	case errors.Is(err, errOtherTree):
		fmt.Println("the code has changed since the last part: the run begins anew (KEEP=1 continues it)")
	case err != nil:
		return err
	case s.Schedules > 0:
		fmt.Printf("continuing after %d schedules\n", s.Schedules)
	}
	for s.Schedules < *count {
		next := s
		if err := p.run(ctx, &next, min(*size, *count-s.Schedules), *processes); err != nil {
			return err
		}
		if err := next.save(*path); err != nil {
			return err
		}
		found := next.Violations[len(s.Violations):]
		s = next
		fmt.Printf("%d of %d schedules, %d terms, %d violations, %v\n",
			s.Schedules, *count, s.Terms, len(s.Violations), s.Elapsed.Round(time.Second))
		if len(found) > 0 {
			break // what is run again continues with the next part
		}
	}
	if *page != "" {
		if err := s.writePage(*page); err != nil {
			return err
		}
	}
	for _, v := range s.Violations {
		fmt.Printf("seed %d: %s\n\tgo test ./lab/sim -run 'TestReplayPrintsItsTranscript$' -v -args -seed=%d\n", v.Seed, v.What, v.Seed)
	}
	if n := len(s.Violations); n > 0 {
		return fmt.Errorf("%d schedules violated an invariant", n)
	}
	return nil
}
