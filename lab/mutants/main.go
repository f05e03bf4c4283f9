package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := command(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	stop()
	os.Exit(code)
}

// command runs the program and returns its exit code.
func command(ctx context.Context, args []string, out io.Writer) (code int, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	workers := flags.Int("j", 1, "how many mutants to run at the same time")
	list := flags.Bool("list", false, "print the selected mutants and run none")
	part := flags.String("part", "", "run only the `K/N`th part: of the selected mutants, every Nth from the Kth on")
	verbose := flags.Bool("v", false, "print the output of the tests that failed, too")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: mutants [flags] [PART OF A NAME...]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return 2, nil // it has printed the reason
	}
	selected := choose(mutants, flags.Args())
	if len(selected) == 0 {
		return 2, fmt.Errorf("no mutant has a name with any of %q", flags.Args())
	}
	if selected, err = deal(selected, *part); err != nil {
		return 2, err
	}
	if len(selected) == 0 {
		return 2, fmt.Errorf("part %s has no mutant", *part)
	}
	if *list {
		for _, m := range selected {
			fmt.Fprintf(out, "%s\n    %s: %s\n", m.name, m.file, m.promise)
		}
		return 0, nil
	}
	root, err := repository()
	if err != nil {
		return 1, err
	}
	r, err := newRunner(root)
	if err != nil {
		return 1, err
	}
	defer r.close()
	start := time.Now()
	outcomes := r.tryAll(ctx, selected, *workers, func(o outcome) {
		report(out, o, *verbose)
	})
	summarize(out, outcomes, time.Since(start))
	if slices.ContainsFunc(outcomes, func(o outcome) bool { return o.verdict != caught }) {
		return 1, nil
	}
	return 0, nil
}

// choose returns the mutants whose names have one of the parts, or all. A part
// that is a whole name chooses that mutant only.
func choose(all []mutant, parts []string) []mutant {
	if len(parts) == 0 {
		return all
	}
	whole := map[string]bool{}
	for _, m := range all {
		whole[m.name] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
		return !slices.ContainsFunc(parts, func(part string) bool {
			return m.name == part || !whole[part] && strings.Contains(m.name, part)
		})
	})
}

// deal returns the Kth of N parts of a list, with the part written as K/N. It
// deals the entries in turn, so that each part has some of every area.
func deal(all []mutant, part string) ([]mutant, error) {
	if part == "" {
		return all, nil
	}
	first, second, found := strings.Cut(part, "/")
	k, errK := strconv.Atoi(first)
	n, errN := strconv.Atoi(second)
	if !found || errK != nil || errN != nil || k < 1 || k > n {
		return nil, fmt.Errorf("-part %s: write K/N, with K from 1 to N", part)
	}
	var dealt []mutant
	for i := k - 1; i < len(all); i += n {
		dealt = append(dealt, all[i])
	}
	return dealt, nil
}

// report prints an outcome, and the command that repeats it unless the mutant
// was caught.
func report(out io.Writer, o outcome, verbose bool) {
	fmt.Fprintf(out, "%-22s %s (%s)\n", o.verdict, o.mutant.name, o.took.Round(100*time.Millisecond))
	if verbose || o.verdict != caught {
		fmt.Fprint(out, indent(o.by+"\n"+o.detail))
	}
	if o.verdict != caught {
		fmt.Fprintf(out, "    repeat it: %s\n", o.mutant)
	}
}

// tryAll tries mutants, several at a time, reports each outcome immediately, and
// returns the outcomes in the order of the mutants. When the context ends it
// returns those that were decided.
func (r *runner) tryAll(ctx context.Context, all []mutant, workers int, tell func(outcome)) []outcome {
	var group sync.WaitGroup
	var mu sync.Mutex
	next := 0
	outcomes := make([]outcome, len(all))
	for range max(1, workers) {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(all) || ctx.Err() != nil {
					return
				}
				o := r.try(ctx, all[i])
				mu.Lock()
				outcomes[i] = o
				tell(o)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return slices.DeleteFunc(outcomes, func(o outcome) bool { return o.verdict == "" })
}

// summarize prints a table of all outcomes and their numbers.
func summarize(out io.Writer, outcomes []outcome, took time.Duration) {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MUTANT\tBREAKS\tVERDICT\tTIME")
	counts := map[verdict]int{}
	for _, o := range outcomes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", o.mutant.name, o.mutant.promise, o.verdict, o.took.Round(100*time.Millisecond))
		counts[o.verdict]++
	}
	_ = table.Flush()
	fmt.Fprintf(out, "\n%d mutants in %s:", len(outcomes), took.Round(time.Second))
	for _, v := range []verdict{caught, survived, another, hung, broken, stale, unsound} {
		if counts[v] > 0 {
			fmt.Fprintf(out, " %d %s", counts[v], strings.ToLower(string(v)))
		}
	}
	fmt.Fprintln(out)
}

// indent indents a text, and keeps only the end of a long one.
func indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	const most = 40
	if len(lines) > most {
		lines = append([]string{lines[0], "..."}, lines[len(lines)-most:]...)
	}
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
