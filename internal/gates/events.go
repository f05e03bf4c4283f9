package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// counts are how many tests ended in which way. Subtests count.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(other counts) {
	c.passed += other.passed
	c.failed += other.failed
	c.skipped += other.skipped
}

// report reads the events of one go test command and prints what a person needs:
// a line for each package, and the output of each failure.
type report struct {
	out     io.Writer
	allowed func(skipped) bool // whether a test may be skipped

	counts counts
	failed []string // packages, and tests of them
	output map[string][]string
	state  map[string]string // of the tests that have begun
}

// skipped is a test that was not run, with the reason that it gave.
type skipped struct{ pkg, test, reason string }

// lines bounds the output that is kept of one test: the first and the last so many.
const lines = 200

// read reads events until the command ends. It passes text that is no event on.
func (r *report) read(events io.Reader) error {
	r.output, r.state = map[string][]string{}, map[string]string{}
	scanner := bufio.NewReader(events)
	for {
		line, err := scanner.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(r.out, line)
			} else {
				r.handle(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) handle(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.failed = append(r.failed, e.ImportPath+" does not compile")
	case "output":
		r.keep(key, e.Output)
		if strings.HasPrefix(e.Test, "Benchmark") && iterations.MatchString(e.Output) {
			r.end(key, event{Action: "pass", Package: e.Package, Test: e.Test}) // go test does not say so
		}
	case "run":
		r.state[key] = "run"
	case "pass", "fail", "skip":
		r.end(key, e)
	}
}

// keep keeps a line of output. Of long output, the middle is dropped.
func (r *report) keep(key, text string) {
	kept := r.output[key]
	kept = append(kept, text)
	if len(kept) > 2*lines {
		kept = slices.Delete(kept, lines, lines+1)
	}
	r.output[key] = kept
}

func (r *report) end(key string, e event) {
	text := strings.Join(r.output[key], "")
	delete(r.output, key)
	delete(r.state, key)
	if e.Test == "" {
		r.endPackage(e, text)
		return
	}
	switch e.Action {
	case "pass":
		r.counts.passed++
	case "skip":
		r.counts.skipped++
		s := skipped{pkg: e.Package, test: e.Test, reason: reasonOf(text)}
		if !r.allowed(s) {
			r.counts.failed++
			r.failed = append(r.failed, fmt.Sprintf("%s %s was skipped, and no entry of internal/gates/skips.go allows it: %s", e.Package, e.Test, s.reason))
		}
	case "fail":
		r.counts.failed++
		r.failed = append(r.failed, e.Package+" "+e.Test)
		fmt.Fprint(r.out, text)
	}
}

func (r *report) endPackage(e event, text string) {
	took := time.Duration(e.Elapsed * float64(time.Second)).Round(100 * time.Millisecond)
	switch e.Action {
	case "pass":
		cached := ""
		if strings.Contains(text, "(cached)") {
			cached = " (cached)"
		}
		fmt.Fprintf(r.out, "ok    %s %s%s\n", e.Package, took, cached)
	case "fail":
		for key := range r.state { // a binary that crashed or ran out of time ended none of them
			if pkg, test, _ := strings.Cut(key, "\x00"); pkg == e.Package {
				fmt.Fprint(r.out, strings.Join(r.output[key], ""))
				r.failed = append(r.failed, pkg+" "+test+" did not end")
				r.counts.failed++
				delete(r.state, key)
			}
		}
		fmt.Fprint(r.out, text)
		r.failed = append(r.failed, e.Package)
		r.counts.failed = max(r.counts.failed, 1)
		fmt.Fprintf(r.out, "FAIL  %s %s\n", e.Package, took)
	}
}

// iterations matches the part of a result that has the number of iterations.
var iterations = regexp.MustCompile(`\t\s*\d+\t`)

// logged matches a line that a test logged, with the place where it did.
var logged = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)$`)

// reasonOf returns the message with which a test was skipped. go test counts every line
// as output of the test that printed last. So the lines that other code of the
// process printed are left out.
func reasonOf(text string) string {
	var reason []string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if found := logged.FindStringSubmatch(line); found != nil {
			inside = true
			reason = append(reason, found[1])
		} else if inside = inside && strings.HasPrefix(line, "        "); inside {
			reason = append(reason, strings.TrimSpace(line))
		}
	}
	return strings.Join(reason, " ")
}
