package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// search is one run of a checker that Spin generates.
type search struct {
	model   model
	part    part
	variant *variant // nil: the true rules
}

func (s search) name() string {
	if s.variant != nil {
		return s.variant.name
	}
	return s.part.name
}

// limits bound one search.
type limits struct {
	memory  int // in MB
	timeout time.Duration
}

// result is what a search found.
type result struct {
	states    int64
	depth     int64
	megabytes float64
	took      time.Duration
	refuted   string // the property that does not hold; empty if all hold
	finished  bool   // every state was visited, or a property was refuted
	steps     []string
	output    string
}

// run generates, compiles and runs the checker in a temporary folder. The search is
// breadth-first: no depth bounds it, and the steps to a refuted property are the fewest.
// A state without a next one is no error.
func (s search) run(ctx context.Context, spin string, limit limits) (r result, err error) {
	folder, err := os.MkdirTemp("", "tenure-model-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, s.model.name), s.model.text, 0o644); err != nil {
		return r, err
	}
	defines := s.part.defines
	if s.variant != nil {
		defines = append(defines[:len(defines):len(defines)], s.variant.defines...)
	}
	if err := in(ctx, folder, spin, append(defines[:len(defines):len(defines)], "-a", s.model.name)...); err != nil {
		return r, err
	}
	err = in(ctx, folder, "cc", "-O2", "-w", "-DBFS", "-DSAFETY", "-DCOLLAPSE", "-DNOCLAIM",
		"-DMEMLIM="+strconv.Itoa(limit.memory), "-o", "pan", "pan.c")
	if err != nil {
		return r, err
	}
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, limit.timeout)
	defer cancel()
	cmd := exec.CommandContext(bounded, "./pan", "-n", "-b", "-E")
	cmd.Dir = folder
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, err
	}
	r, err = parsePan(string(output))
	r.took = time.Since(begun)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if bounded.Err() != nil {
		return r, fmt.Errorf("the search took longer than %v", limit.timeout)
	}
	if err == nil && r.refuted != "" {
		r.steps = replay(ctx, folder, s.model.name)
	}
	return r, err
}

// replay returns the texts that the steps to the error print.
func replay(ctx context.Context, folder, name string) (steps []string) {
	cmd := exec.CommandContext(ctx, "./pan", "-S", "-r", name+".trail")
	cmd.Dir = folder
	output, _ := cmd.CombinedOutput() // it fails at the assertion, as it should
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "pan:") || strings.HasPrefix(line, "spin:") {
			break
		}
		steps = append(steps, strings.TrimSpace(line))
	}
	return steps
}

var (
	panErrors   = regexp.MustCompile(`State-vector \d+ byte, depth reached (\d+), errors: (\d+)`)
	panStates   = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	panMemory   = regexp.MustCompile(`(?m)^\s*([\d.]+)\s+total actual memory usage`)
	panViolated = regexp.MustCompile(`(?m)^pan:\d+: assertion violated \(?(\w+)\)?`)
	panOther    = regexp.MustCompile(`(?m)^(?:pan|error): ?\d*:? ?(.*)$`)
)

// parsePan reads the output of a checker.
func parsePan(output string) (r result, err error) {
	r.output = output
	found := panErrors.FindStringSubmatch(output)
	states, memory := panStates.FindStringSubmatch(output), panMemory.FindStringSubmatch(output)
	if found == nil || states == nil || memory == nil {
		return r, fmt.Errorf("the checker ended early:\n%s", output)
	}
	r.depth, _ = strconv.ParseInt(found[1], 10, 64) // the pattern has digits only
	r.states, _ = strconv.ParseInt(states[1], 10, 64)
	r.megabytes, _ = strconv.ParseFloat(memory[1], 64)
	violated := panViolated.FindStringSubmatch(output)
	stopped := strings.Contains(output, "Search not completed") || strings.Contains(output, "max search depth too small")
	switch {
	case found[2] == "0" && !stopped:
		r.finished = true
	case violated != nil:
		r.finished, r.refuted = true, violated[1]
	default:
		other := panOther.FindStringSubmatch(output)
		return r, fmt.Errorf("the search was not finished: %v", other)
	}
	return r, nil
}
