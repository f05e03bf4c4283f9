package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// verdict is what became of a mutant.
type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "SURVIVED"
	another  verdict = "SAYS SOMETHING ELSE"
	hung     verdict = "HUNG"
	broken   verdict = "DOES NOT COMPILE"
	stale    verdict = "STALE"
	unsound  verdict = "TESTS FAIL WITHOUT IT"
)

// outcome is a verdict with its reasons.
type outcome struct {
	mutant  mutant
	verdict verdict
	by      string // the tests that decided
	detail  string // of what went wrong, or the output of the failure
	took    time.Duration
}

// runner builds and runs tests with and without breaks.
type runner struct {
	root    string
	scratch string // a folder for what is built, removed by close
	limit   time.Duration

	mu       sync.Mutex
	sound    map[tests]func() error
	baseline map[string]func() (string, error) // test binaries by package
}

func newRunner(root string) (*runner, error) {
	scratch, err := os.MkdirTemp("", "mutants")
	return &runner{
		root: root, scratch: scratch, limit: limit,
		sound: map[tests]func() error{}, baseline: map[string]func() (string, error){},
	}, err
}

func (r *runner) close() { _ = os.RemoveAll(r.scratch) }

// try decides about one mutant.
func (r *runner) try(ctx context.Context, m mutant) outcome {
	start := time.Now()
	o := r.decide(ctx, m)
	o.mutant, o.took = m, time.Since(start)
	return o
}

func (r *runner) decide(ctx context.Context, m mutant) outcome {
	text, err := m.mutate(r.root)
	if err != nil {
		return outcome{verdict: stale, detail: err.Error()}
	}
	overlay, err := r.overlay(m, text)
	if err != nil {
		return outcome{verdict: broken, detail: err.Error()}
	}
	for _, t := range m.tests {
		if err := r.soundness(ctx, t); err != nil {
			return outcome{verdict: unsound, by: t.String(), detail: err.Error()}
		}
		binary, err := r.build(ctx, t, overlay)
		if err != nil {
			return outcome{verdict: broken, by: t.String(), detail: err.Error()}
		}
		output, err := r.run(ctx, t, binary)
		_ = os.Remove(binary)
		switch {
		case err == nil:
		case timedOut(output, err):
			return outcome{verdict: hung, by: t.String(), detail: output}
		case !strings.Contains(messages(output), m.says), m.says == assertion && strings.Contains(output, "\npanic: "):
			return outcome{verdict: another, by: t.String(), detail: fmt.Sprintf("the failure does not say %q:\n%s", m.says, output)}
		default:
			return outcome{verdict: caught, by: t.String(), detail: output}
		}
	}
	return outcome{verdict: survived}
}

// overlay writes the broken file and the overlay file that names it to the compiler.
func (r *runner) overlay(m mutant, text []byte) (string, error) {
	folder := filepath.Join(r.scratch, fmt.Sprintf("%x", sha256.Sum256([]byte(m.name)))[:16])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(folder, filepath.Base(m.file))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(r.root, m.file): file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o644)
}

// build builds the test binary of a package.
func (r *runner) build(ctx context.Context, t tests, overlay string) (string, error) {
	folder := r.scratch
	arguments := []string{"test", "-c", "-vet=off"}
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
		folder = filepath.Dir(overlay)
	}
	binary := filepath.Join(folder, strings.NewReplacer("/", "_", ".", "_").Replace(t.module+"_"+t.folder)+".test")
	command := exec.CommandContext(ctx, "go", append(arguments, "-o", binary, "./"+t.folder)...)
	command.Dir = filepath.Join(r.root, t.module)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return binary, nil
}

// run runs tests with a binary and returns what they print.
func (r *runner) run(ctx context.Context, t tests, binary string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit+10*time.Second) // the binary's own limit comes first
	defer cancel()
	arguments := []string{"-test.run", t.run, "-test.failfast", "-test.timeout", r.limit.String()}
	command := exec.CommandContext(ctx, binary, append(arguments, strings.Fields(t.args)...)...)
	command.Dir = filepath.Join(r.root, t.module, t.folder)
	command.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return output.String(), err
}

// messages returns an output without the lines of the testing framework and of
// the runtime. It keeps a panic of a test's own code, which a break can let
// through to end the program.
func messages(output string) string {
	lines := strings.Split(output, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		line = strings.TrimSpace(line)
		return slices.ContainsFunc(frameworkLines, func(start string) bool { return strings.HasPrefix(line, start) })
	}), "\n")
}

// frameworkLines are the beginnings of lines that package testing or the runtime
// prints.
var frameworkLines = []string{"--- ", "=== ", "FAIL", "panic: test timed out", "panic: runtime error", "fatal error: "}

func timedOut(output string, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || strings.Contains(output, "panic: test timed out after")
}

// soundness checks, once, that tests exist and pass on the unbroken code.
func (r *runner) soundness(ctx context.Context, t tests) error {
	r.mu.Lock()
	check := r.sound[t]
	if check == nil {
		check = sync.OnceValue(func() error { return r.checkSoundness(ctx, t) })
		r.sound[t] = check
	}
	r.mu.Unlock()
	return check()
}

func (r *runner) checkSoundness(ctx context.Context, t tests) error {
	key := t.module + "/" + t.folder
	r.mu.Lock()
	build := r.baseline[key]
	if build == nil {
		build = sync.OnceValues(func() (string, error) { return r.build(ctx, t, "") })
		r.baseline[key] = build
	}
	r.mu.Unlock()
	binary, err := build()
	if err != nil {
		return err
	}
	output, err := r.run(ctx, t, binary)
	switch {
	case err != nil:
		return fmt.Errorf("%w:\n%s", err, output)
	case strings.Contains(output, "no tests to run"):
		return errors.New("no test matches the pattern")
	}
	return nil
}
