package main

import (
	"path"
	"strings"
)

// long is the reason of a test that a short run leaves out.
const long = "long: make deep runs it"

// allowance is a test that may be skipped, with the reason.
type allowance struct {
	pkg     string // from the root of the repository
	test    string // with its subtests
	message string // part of the reason that the test prints
	because string
}

// allowances are the tests that may be skipped. A test that skips for another reason,
// or is not named here, fails the run.
var allowances = []allowance{}

// testsOfRepository are all tests of the repository. The program sets it once.
var testsOfRepository []test

// mayBeSkipped reports whether a test may be skipped in a step: a long one in a
// short run, if another step runs all of it, or one of the allowances.
func mayBeSkipped(s step, found skipped) bool {
	pkg := strings.TrimPrefix(strings.TrimPrefix(found.pkg, modulePath), "/")
	if pkg == "" {
		pkg = "."
	}
	name, _, _ := strings.Cut(found.test, "/")
	for _, a := range allowances {
		if !s.strict && path.Clean(a.pkg) == pkg && (a.test == found.test || a.test == name) && strings.Contains(found.reason, a.message) {
			return true
		}
	}
	if !s.short || found.reason != long {
		return false
	}
	for _, t := range testsOfRepository {
		if t.pkg() == pkg && t.name == name {
			return runsInFull(t)
		}
	}
	return false
}

// modulePath is the path of the root module. Those of the others begin with it.
const modulePath = "github.com/exactly-one/tenure"

// runsInFull reports whether a step of a gate or a slice runs a test and its long
// parts.
func runsInFull(t test) bool {
	for _, p := range append([]part{check, quick}, deep...) {
		for _, s := range p.steps {
			if !s.short && s.selects(t) {
				return true
			}
		}
	}
	return false
}
