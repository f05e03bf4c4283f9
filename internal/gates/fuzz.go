package main

import (
	"regexp"
	"slices"
	"strings"
)

// fuzzed are the fuzz targets by package.
var fuzzed = []struct{ pkg, name string }{
	{"internal/program/config", "FuzzParse"},
	{"internal/program/sidecar", "FuzzBearer"},
	{"internal/program/sidecar", "FuzzDecodeStepDown"},
	{"internal/program/sidecar", "FuzzParseAddress"},
	{"internal/program/sidecar", "FuzzRole"},
	{"cron", "FuzzParse"},
	{"internal/feed", "FuzzJoin"},
	{"metrics", "FuzzDecodeSample"},
}

// fuzzTargets are steps that fuzz one target each, of the program or of the library.
func fuzzTargets(program bool) []step {
	var steps []step
	for _, f := range fuzzed {
		if strings.HasPrefix(f.pkg, "internal/program/") != program {
			continue
		}
		steps = append(steps, step{title: f.pkg + " " + f.name, packages: []string{"./" + f.pkg}, run: "^$", flags: []string{"-fuzz=^" + f.name + "$", "-fuzztime=1m", "-fuzzminimizetime=10x"}})
	}
	return steps
}

// fuzzes reports whether a step fuzzes a target.
func (s step) fuzzes(t test) bool {
	return s.has("-fuzz=^"+t.name+"$") && t.matchesAny(s.packages)
}

// benchmarks reports whether a step runs a benchmark, or a part of it.
func (s step) benchmarks(t test) bool {
	return slices.ContainsFunc(s.flags, func(flag string) bool {
		pattern, found := strings.CutPrefix(flag, "-bench=")
		return found && slices.ContainsFunc(strings.Split(pattern, "|"), func(p string) bool {
			top, _, _ := strings.Cut(p, "/")
			return regexp.MustCompile(top).MatchString(t.name)
		})
	}) && t.matchesAny(s.packages) && !t.matchesAny(s.without)
}

func (s step) has(flag string) bool { return slices.Contains(s.flags, flag) }
