package main

import "strings"

// fuzzed are the fuzz targets by package.
var fuzzed = []struct{ pkg, name string }{
	{"cmd/tenure/internal/config", "FuzzParse"},
	{"cmd/tenure/internal/sidecar", "FuzzBearer"},
	{"cmd/tenure/internal/sidecar", "FuzzDecodeStepDown"},
	{"cmd/tenure/internal/sidecar", "FuzzParseAddress"},
	{"cmd/tenure/internal/sidecar", "FuzzRole"},
	{"cron", "FuzzParse"},
	{"internal/feed", "FuzzJoin"},
	{"metrics", "FuzzDecodeSample"},
}

// fuzzTargets are steps that fuzz one target each.
func fuzzTargets() []step {
	var steps []step
	for _, f := range fuzzed {
		steps = append(steps, step{title: f.pkg + " " + f.name, packages: []string{"./" + f.pkg}, run: "^$", flags: []string{"-fuzz=^" + f.name + "$", "-fuzztime=1m"}})
	}
	return steps
}

// fuzzes reports whether a step fuzzes a target.
func (s step) fuzzes(t test) bool {
	return s.has("-fuzz=^"+t.name+"$") && t.matchesAny(s.folder, s.packages)
}

// benchmarks reports whether a step runs a benchmark.
func (s step) benchmarks(t test) bool {
	return s.has("-bench=.") && t.matchesAny(s.folder, s.packages) && !t.matchesAny(s.folder, s.without)
}

func (s step) has(flag string) bool {
	for _, f := range s.flags {
		if strings.HasPrefix(f, flag) {
			return true
		}
	}
	return false
}
