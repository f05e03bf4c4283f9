package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// runner runs parts from the root of the repository.
type runner struct {
	root string
	out  io.Writer
	args []string // further flags of go test, of the caller
	took map[string]time.Duration

	limit time.Duration // of each step
}

// stepLimit ends a step that hangs, before the run as a whole is ended from outside
// without a word about the step. Tests have their own limit.
const stepLimit = 40 * time.Minute

// errFailed means that a part failed. What failed was printed.
var errFailed = errors.New("failed")

// run runs all steps of a part, also after one has failed, and prints a line with
// what became of it.
func (r *runner) run(ctx context.Context, p part) error {
	began := time.Now()
	var total counts
	var failed []string
	if err := r.prepare(ctx, p.needs); err != nil {
		failed = append(failed, err.Error())
	} else {
		for _, s := range p.steps {
			began := time.Now()
			fmt.Fprintf(r.out, "==> %s: %s\n", p.name, s.title)
			c, names := r.limited(ctx, s)
			total.add(c)
			failed = append(failed, names...)
			r.took[p.key(s)] = time.Since(began)
			fmt.Fprintf(r.out, "==> %s: %s took %.0f s\n", p.name, s.title, time.Since(began).Seconds())
			if ctx.Err() != nil {
				failed = append(failed, context.Cause(ctx).Error())
				break
			}
		}
	}
	r.took[p.name] = time.Since(began)
	for _, name := range failed {
		fmt.Fprintln(r.out, "failed:", name)
	}
	if total != (counts{}) {
		fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped)
	}
	verdict := "ok"
	if len(failed) > 0 {
		verdict = "FAILED"
	}
	fmt.Fprintf(r.out, "%-6s %-22s %4.0f s\n", verdict, p.name, time.Since(began).Seconds())
	if len(failed) > 0 {
		fmt.Fprintf(r.out, "again: %s\n", p.again())
		return errFailed
	}
	return nil
}

// again is the command that repeats a part.
func (p part) again() string {
	switch p.name {
	case check.name, quick.name:
		return "make " + p.name
	}
	return "make deep SLICE=" + p.name
}

// prepare installs programs.
func (r *runner) prepare(ctx context.Context, needs []string) error {
	if needs == nil {
		return nil
	}
	return r.command(ctx, nil, append([]string{filepath.Join(".ci", "prerequisites")}, needs...))
}

// limited runs a step that may take no longer than the limit.
func (r *runner) limited(ctx context.Context, s step) (counts, []string) {
	within, end := context.WithTimeout(ctx, r.limit)
	defer end()
	c, failed := r.step(within, s)
	if ctx.Err() == nil && within.Err() != nil {
		failed = append(failed, fmt.Sprintf("%s: it took longer than %v", s.title, r.limit))
	}
	return c, failed
}

// step runs a step and returns the names of what failed.
func (r *runner) step(ctx context.Context, s step) (counts, []string) {
	if !s.tests() {
		if err := r.command(ctx, s.env, s.command); err != nil {
			return counts{}, []string{fmt.Sprintf("%s: %v", strings.Join(s.command, " "), err)}
		}
		return counts{}, nil
	}
	packages, err := r.packages(ctx, s)
	if err != nil {
		return counts{}, []string{err.Error()}
	}
	environment := slices.Concat(s.env, r.memory(ctx))
	command := r.prepared(ctx, environment, slices.Concat([]string{"go"}, s.arguments(packages), r.args))
	read, write := io.Pipe()
	command.Stdout = write
	command.Stderr = r.out
	report := report{out: r.out, allowed: func(found skipped) bool { return mayBeSkipped(s, found) }}
	ended := make(chan error, 1)
	go func() { ended <- report.read(read) }() // exits when write is closed; awaited below
	failed := command.Run()
	_ = write.Close() // never fails
	err = <-ended
	if failed != nil && len(report.failed) == 0 {
		report.failed = append(report.failed, fmt.Sprintf("%s: %v", s.title, failed))
	}
	if err != nil {
		report.failed = append(report.failed, err.Error())
	}
	if report.counts == (counts{}) && len(report.failed) == 0 {
		report.failed = append(report.failed, s.title+": no test ran")
	}
	return report.counts, report.failed
}

// memory returns the variables that put the temporary files of tests into memory, if
// there is room, and keep the data directories that servers start from for the next
// package. The compiler writes to the disk.
func (r *runner) memory(ctx context.Context) []string {
	keep := []string{"TENURE_KEEP_TEMPLATES=1"}
	command := exec.CommandContext(ctx, filepath.Join(".ci", "memory"))
	command.Dir = r.root
	folder, err := command.Output()
	if err != nil || len(folder) == 0 {
		return keep
	}
	return append(keep, "TMPDIR="+strings.TrimSpace(string(folder)), "GOTMPDIR="+os.TempDir())
}

// packages returns the packages of a step in the order of its patterns, the longest
// first, and each once.
func (r *runner) packages(ctx context.Context, s step) ([]string, error) {
	all, err := r.list(ctx, s.packages)
	if err != nil || len(s.without) == 0 {
		return all, err
	}
	without, err := r.list(ctx, s.without)
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, name := range without {
		left[name] = true
	}
	var kept []string
	for _, name := range all {
		if !left[name] {
			kept = append(kept, name)
		}
	}
	return kept, nil
}

// list lists the packages that match patterns, in the order of the patterns.
func (r *runner) list(ctx context.Context, patterns []string) ([]string, error) {
	var all []string
	seen := map[string]bool{}
	for _, pattern := range patterns {
		command := exec.CommandContext(ctx, "go", "list", pattern)
		command.Dir = r.root
		command.Stderr = r.out
		text, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", pattern, err)
		}
		for name := range strings.FieldsSeq(string(text)) {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// command runs a command and shows what it prints.
func (r *runner) command(ctx context.Context, env, words []string) error {
	command := r.prepared(ctx, env, words)
	command.Stdout, command.Stderr = r.out, r.out
	return command.Run()
}

// prepared makes a command that ends, with all its descendants, when the context
// ends.
func (r *runner) prepared(ctx context.Context, env, words []string) *exec.Cmd {
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Dir = r.root
	command.Env = append(os.Environ(), env...)
	endWithDescendants(command)
	command.WaitDelay = 20 * time.Second
	return command
}
