package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what go test makes of a function.
type kind string

const (
	testKind      kind = "test"
	fuzzKind      kind = "fuzz target"
	benchmarkKind kind = "benchmark"
	exampleKind   kind = "example"
	unrunKind     kind = "example that only compiles"
)

// test is a function of a test file.
type test struct {
	module string // folder of the module, from the root of the repository
	folder string // of the package, within the module; "." for the module's own
	name   string
	kind   kind
}

// String is how to name the test to a person.
func (t test) String() string {
	return fmt.Sprintf("%s %s in %s", t.kind, t.name, filepath.ToSlash(filepath.Join(t.module, t.folder)))
}

// pkg is the package of the test, as a path from the root of the repository.
func (t test) pkg() string { return filepath.ToSlash(filepath.Join(t.module, t.folder)) }

// allTests lists the tests, fuzz targets, benchmarks and examples of all modules
// below a folder, as go test -list does, but without building them. It knows the
// build constraints of this system.
func allTests(root string) ([]test, error) {
	var all []test
	module := ""
	modules := map[string]string{} // by folder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (name == "testdata" || name == "node_modules" || name == "bin" || name == "dist" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return fs.SkipDir
		}
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		module = modules[filepath.Dir(folder)]
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			module = folder
		}
		modules[folder] = module
		found, err := testsOf(path)
		for _, t := range found {
			t.module = module
			if t.folder, err = filepath.Rel(module, folder); err != nil {
				return err
			}
			all = append(all, t)
		}
		return err
	})
	return all, err
}

// testsOf lists the tests of one package.
func testsOf(folder string) ([]test, error) {
	files, err := testFiles(folder)
	if err != nil {
		return nil, err
	}
	var found []test
	for _, file := range files {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				if k := kindOf(function); k != "" {
					found = append(found, test{name: function.Name.Name, kind: k})
				}
			}
		}
	}
	for _, example := range doc.Examples(files...) {
		k := exampleKind
		if example.Output == "" && !example.EmptyOutput {
			k = unrunKind
		}
		found = append(found, test{name: "Example" + example.Name, kind: k})
	}
	slices.SortFunc(found, func(a, b test) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// testFiles parses the test files of a folder that this system builds.
func testFiles(folder string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	set := token.NewFileSet()
	for _, name := range names {
		match, err := build.Default.MatchFile(folder, filepath.Base(name))
		if err != nil {
			return nil, err
		}
		if !match {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// kindOf returns what go test makes of a function; empty for a function that it does
// not run.
func kindOf(function *ast.FuncDecl) kind {
	for _, k := range []struct {
		prefix string
		kind   kind
	}{{"Test", testKind}, {"Fuzz", fuzzKind}, {"Benchmark", benchmarkKind}} {
		if function.Recv == nil && isTest(function, k.prefix) {
			return k.kind
		}
	}
	return ""
}

// isTest reports whether go test runs a function with a prefix: after the prefix
// comes no lower-case letter, and the only parameter is a pointer. TestMain is none.
func isTest(function *ast.FuncDecl, prefix string) bool {
	rest, found := strings.CutPrefix(function.Name.Name, prefix)
	if first, _ := utf8.DecodeRuneInString(rest); !found || rest != "" && unicode.IsLower(first) {
		return false
	}
	parameters := function.Type.Params.List
	if len(parameters) != 1 || function.Type.Results != nil {
		return false
	}
	pointer, ok := parameters[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	selector, ok := pointer.X.(*ast.SelectorExpr)
	return ok && selector.Sel.Name != "M"
}
