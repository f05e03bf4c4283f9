package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryMutantSaysWhatItsTestsReport: the text of an entry states a broken
// promise. It is a text of the tests, not of the framework that runs them.
func TestEveryMutantSaysWhatItsTestsReport(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	s := &sources{root: root, literals: map[string][]string{}, imports: map[string][]string{}}
	for _, m := range mutants[:len(mutants)-len(constantMutants)] { // those of constants come last
		if err := validateText(m.says); err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if !slices.ContainsFunc(m.tests, func(ts tests) bool { return s.have(t, ts, m.says) }) {
			t.Errorf("%s: no literal of its tests has the text %q", m.name, m.says)
		}
	}
}

// TestTextsThatProveNothingAreRejected: a short text, a text of the framework
// or the name of a test is no statement.
func TestTextsThatProveNothingAreRejected(t *testing.T) {
	for text, want := range map[string]bool{
		"":                         false,
		"not red":                  false,
		"panic: runtime":           false,
		"panic":                    false,
		"--- FAIL: ":               false,
		"FAIL the test":            false,
		"test timed out after":     false,
		"nil pointer dereference":  false,
		"goroutine ":               false,
		"race detected":            false,
		"TestHeartbeat":            false,
		"want a term":              true,
		"a panic ends the program": true,
		"the call timed out":       true,
		"invariant 1":              true,
	} {
		if err := validateText(text); (err == nil) != want {
			t.Errorf("the text %q: error %v; want it accepted: %t", text, err, want)
		}
	}
	s := &sources{root: module(t), literals: map[string][]string{}, imports: map[string][]string{}}
	for text, want := range map[string]bool{
		"the sum is wrong": true,
		"the sum is right": false,
		"wrong: %d":        false,
		"testing":          false,
	} {
		if got := s.have(t, in(".", "^TestSum$"), text); got != want {
			t.Errorf("the tests have the text %q: %t; want %t", text, got, want)
		}
	}
}

// ofFramework are texts that package testing and the runtime print.
var ofFramework = []string{
	"panic: test timed out after 2m0s", "panic: runtime error: invalid memory address or nil pointer dereference",
	"panic: runtime error: index out of range", "fatal error: all goroutines are asleep - deadlock!", "signal SIGSEGV: segmentation violation",
	"goroutine 1 [running]:", "testing.tRunner", "--- FAIL: ", "exit status 2", "no tests to run", "[recovered]",
	"testing: race detected during execution of test", "WARNING: DATA RACE", "context deadline exceeded",
}

var ofFrameworkAnywhere = regexp.MustCompile(`FAIL|panic:|goroutine |test timed out|DATA RACE|\bTest[A-Z]\w+`)

// validateText returns an error if a text of an entry states no promise.
func validateText(text string) error {
	const least = 8
	if len(text) < least {
		return fmt.Errorf("the text %q has fewer than %d characters", text, least)
	}
	if ofFrameworkAnywhere.MatchString(text) || slices.ContainsFunc(ofFramework, func(f string) bool { return strings.Contains(f, text) }) {
		return fmt.Errorf("the text %q is of the testing framework, not of a test", text)
	}
	return nil
}

// sources reads the string literals of tests.
type sources struct {
	root     string
	literals map[string][]string // by folder, with /_test for its tests
	imports  map[string][]string // likewise: folders of the repository
}

const modulePath = "github.com/exactly-one/tenure"

// have reports whether a text is in a literal of a package's tests or of the
// helpers that the tests use.
func (s *sources) have(t *testing.T, ts tests, text string) bool {
	t.Helper()
	folder := filepath.Join(ts.module, ts.folder)
	pending := []string{folder + "/_test"}
	for seen := map[string]bool{}; len(pending) > 0; pending = pending[1:] {
		key := pending[0]
		if seen[key] {
			continue
		}
		seen[key] = true
		s.read(t, key)
		if key != folder+"/_test" && !s.helps(key) {
			continue
		}
		if slices.ContainsFunc(s.literals[key], func(l string) bool { return strings.Contains(withoutVerbs.ReplaceAllString(l, "\x00"), text) }) {
			return true
		}
		pending = append(pending, s.imports[key]...)
	}
	return false
}

var withoutVerbs = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z%]`)

// helps reports whether a package serves tests only: it imports package testing,
// or belongs to the simulator or to the checks of histories and steps.
func (s *sources) helps(folder string) bool {
	return slices.Contains(s.imports[folder], "testing") || strings.HasPrefix(folder, "lab/sim") || folder == "lab/model/trace"
}

// read reads the literals and the imports of a folder's files.
func (s *sources) read(t *testing.T, key string) {
	t.Helper()
	if _, done := s.literals[key]; done {
		return
	}
	folder, ofTests := strings.CutSuffix(key, "/_test")
	files, err := filepath.Glob(filepath.Join(s.root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]bool{}
	s.literals[key] = []string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") != ofTests {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if path == modulePath {
				continue // the product's
			}
			imports[strings.TrimPrefix(path, modulePath+"/")] = true
		}
		for _, declaration := range parsed.Decls {
			if of, ok := declaration.(*ast.GenDecl); ok && of.Tok == token.IMPORT {
				continue
			}
			ast.Inspect(declaration, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					value, _ := strconv.Unquote(l.Value)
					s.literals[key] = append(s.literals[key], value)
				}
				return true
			})
		}
	}
	if folder == "lab/sim" && ofTests {
		imports[folder] = true // its tests print what it finds
	}
	s.imports[key] = slices.Sorted(maps.Keys(imports))
}
