// Command model checks the models of Tenure's protocol with Spin: every state of each
// part is visited, and each variant, a rule that is broken on purpose, is refuted.
//
//	go run ./lab/model                  all parts and variants
//	go run ./lab/model -only=reunion    those whose file, part or name matches
//	go run ./lab/model -digests         accept the present code as what the models abstract
//	go run ./lab/model -replay=FILE     check that the models allow a stored history, or all of a folder
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/lab/model/trace"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	only := flags.String("only", "", "run parts and variants whose file, part or name matches this `pattern`")
	parallel := flags.Int("j", 2, "how many searches run at the same time")
	memory := flags.Int("memory", 3000, "the memory of one search in `MB`")
	timeout := flags.Duration("timeout", 10*time.Minute, "the time of one search")
	digests := flags.Bool("digests", false, "write the digests of the present code into the models, and run nothing")
	history := flags.String("replay", "", "replay the history in this `file`, or all in this folder, and run nothing")
	steps := flags.Bool("steps", false, "print the steps that refute each variant")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *history != "" {
		return replayAll(*history, out)
	}
	models, err := readModels()
	if err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	if *digests {
		folder := filepath.Join(root, "lab", "model")
		return errors.Join(rewriteDigests(root, folder, models), rewriteTable(folder, models))
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	spin, err := findSpin(ctx, filepath.Join(root, "bin", "spin"))
	if err != nil {
		return err
	}
	r := &runner{out: out, spin: spin, limit: limits{*memory, *timeout}, steps: *steps}
	return r.run(ctx, searches(models, pattern), *parallel)
}

// replayAll checks a stored history, or all of a folder.
func replayAll(name string, out io.Writer) error {
	names, err := filepath.Glob(filepath.Join(name, "*.json"))
	if err != nil {
		return err
	}
	if info, err := os.Stat(name); err != nil {
		return err
	} else if !info.IsDir() {
		names = []string{name}
	}
	if len(names) == 0 {
		return fmt.Errorf("no history is in %s", name)
	}
	var failed error
	steps, outside := 0, 0
	for _, name := range names {
		c, err := replayFile(name)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		if c != nil {
			steps, outside = steps+c.Steps, outside+c.Outside
		}
	}
	fmt.Fprintf(out, "%d steps of %d histories were replayed; %d sessions left the models\n", steps, len(names), outside)
	return failed
}

func replayFile(name string) (*trace.Checker, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return trace.Replay(file)
}

// repository returns the root of the repository.
func repository() (string, error) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/exactly-one/tenure").Output()
	return strings.TrimSpace(string(output)), err
}

// searches lists the parts and variants that match: parts first, since they take longest.
func searches(models []model, pattern *regexp.Regexp) (parts []search) {
	var variants []search
	for _, m := range models {
		for _, p := range m.parts {
			if pattern.MatchString(m.name + " " + p.name) {
				parts = append(parts, search{m, p, nil})
			}
		}
		for i, v := range m.variants {
			if p, _ := m.part(v.part); pattern.MatchString(m.name + " " + p.name + " " + v.name) {
				variants = append(variants, search{m, p, &m.variants[i]})
			}
		}
	}
	return append(parts, variants...)
}

// runner runs searches and prints their results.
type runner struct {
	out   io.Writer
	spin  string
	limit limits
	steps bool

	mu        sync.Mutex
	failed    []string
	exhausted int // parts
	refuted   int // variants
	states    int64
}

var errNothing = errors.New("no part and no variant matches")

func (r *runner) run(ctx context.Context, all []search, parallel int) error {
	if len(all) == 0 {
		return errNothing
	}
	begun := time.Now()
	fmt.Fprintf(r.out, "%-26s %12s %6s %8s %7s  %s\n", "part or variant", "states", "depth", "MB", "s", "result")
	next := make(chan search)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() { // exits when next is closed
			for s := range next {
				found, err := s.run(ctx, r.spin, r.limit)
				r.report(s, found, err)
			}
		})
	}
	for _, s := range all {
		next <- s
	}
	close(next)
	workers.Wait()
	fmt.Fprintf(r.out, "%d parts exhausted, %d variants refuted: %d states in %v\n", r.exhausted, r.refuted, r.states, time.Since(begun).Round(time.Second))
	if len(r.failed) > 0 {
		return fmt.Errorf("%d of %d failed: %s", len(r.failed), len(all), strings.Join(r.failed, ", "))
	}
	return nil
}

// report prints a result and records whether it is the wanted one.
func (r *runner) report(s search, found result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states += found.states
	text, good := verdict(s, found, err)
	switch {
	case !good:
		r.failed = append(r.failed, s.name())
	case s.variant == nil:
		r.exhausted++
	default:
		r.refuted++
	}
	fmt.Fprintf(r.out, "%-26s %12d %6d %8.0f %7.1f  %s\n", s.name(), found.states, found.depth, found.megabytes, found.took.Seconds(), text)
	if len(found.steps) > 0 && (r.steps || !good) {
		fmt.Fprintf(r.out, "    %s\n", strings.Join(found.steps, "\n    "))
	}
}

// verdict describes a result and reports whether it is the wanted one.
func verdict(s search, found result, err error) (text string, good bool) {
	switch {
	case err != nil:
		return fmt.Sprintf("FAILED: %v", err), false
	case s.variant == nil && found.refuted != "":
		return fmt.Sprintf("FAILED: the true rules violate %s", found.refuted), false
	case s.variant == nil:
		return "exhausted", true
	case found.refuted == "":
		return fmt.Sprintf("FAILED: not refuted, although %s", s.variant.what), false
	case found.refuted != s.variant.property:
		return fmt.Sprintf("FAILED: refuted by %s, not by %s", found.refuted, s.variant.property), false
	}
	return "refuted by " + found.refuted, true
}
