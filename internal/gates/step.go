package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// part is a gate or a slice: steps with one name, which run in their order.
type part struct {
	name   string
	proves string
	needs  []string // programs, as .ci/prerequisites takes them
	steps  []step
}

// step tests packages, or runs a command.
type step struct {
	title  string
	proves string // what a step of the gate of a commit proves

	packages []string // patterns of go test
	without  []string // patterns of packages that are left out
	run      string   // pattern of -run; empty for all
	skip     string   // pattern of -skip
	short    bool     // leaves out long tests
	race     bool
	strict   bool     // fails if a test is skipped that may be skipped elsewhere
	flags    []string // further flags of go test

	command []string // runs instead of tests

	env []string
}

// key names a step of a part among the times.
func (p part) key(s step) string { return p.name + ": " + s.title }

// tests reports whether the step runs tests, and not a command.
func (s step) tests() bool { return len(s.command) == 0 }

// arguments returns the arguments of the go command that runs the tests.
func (s step) arguments(packages []string) []string {
	// go vet and golangci-lint have read the code. Linking without debugging
	// information saves a third of the linker's time.
	arguments := []string{"test", "-json", "-vet=off", "-ldflags=-w", "-timeout=30m"}
	if s.short {
		arguments = append(arguments, "-short")
	}
	if s.race {
		arguments = append(arguments, "-race")
	}
	if s.run != "" {
		arguments = append(arguments, "-run="+s.run)
	}
	if s.skip != "" {
		arguments = append(arguments, "-skip="+s.skip)
	}
	return append(append(arguments, s.flags...), packages...)
}

// selects reports whether the step runs a test, in full or as the short version.
func (s step) selects(t test) bool {
	return s.tests() && t.matchesAny(s.packages) && !t.matchesAny(s.without) &&
		matchesName(s.run, t.name, true) && !matchesName(s.skip, t.name, false)
}

// matchesAny reports whether the test's package matches one of the patterns of go
// test in the root of the repository. As for go test, "..." stays within one module.
func (t test) matchesAny(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, recursive := strings.CutSuffix(pattern, "...")
		prefix = path.Clean(prefix)
		switch {
		case prefix == t.pkg():
			return true
		case !recursive || prefix != "." && !strings.HasPrefix(t.pkg(), prefix+"/"):
			return false
		}
		return prefix == t.module || t.module == "." || strings.HasPrefix(prefix, t.module+"/")
	})
}

// matchesName reports whether a whole test matches a pattern of -run or -skip. A
// pattern of subtests, with a slash, matches no whole test.
func matchesName(pattern, name string, empty bool) bool {
	if pattern == "" {
		return empty
	}
	return !strings.Contains(pattern, "/") && regexp.MustCompile(pattern).MatchString(name)
}
