package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// starters are the functions that start a real server, or return one that runs, by
// folder and name.
var starters = []string{
	"internal/pgtest.Shared", "internal/pgtest.Start", "internal/pgtest.ExampleDatabase",
	"internal/mariatest.Shared", "internal/mariatest.Start",
	"internal/pgserver.NewSandbox",
}

var timeType = regexp.MustCompile(`^(time\.Time|time\.Duration|clocks\.Instant)$`)

// testSource is the source of all tests and of the packages for tests. Its keys are
// folder and name of a declaration. A method has the key of every declaration with its
// name in the folder, so that mentions has too many edges rather than too few.
type testSource struct {
	files    *token.FileSet
	mentions map[string]map[string]bool // the declarations that each declaration names
	tests    map[string][]string        // the keys of the tests and examples with a name
	declared map[string][]declaration   // the functions and variables of test files
	fields   map[string]bool            // unexported fields of product code with a time, by folder and name
}

// declaration is a function, method or variable of a test file.
type declaration struct {
	node     ast.Node
	file     *ast.File
	internal bool // its package is the tested one
}

// readTestSource parses all test files once.
var readTestSource = sync.OnceValues(func() (*testSource, error) {
	s := &testSource{
		files: token.NewFileSet(), mentions: map[string]map[string]bool{}, tests: map[string][]string{},
		declared: map[string][]declaration{}, fields: map[string]bool{},
	}
	ofTests := map[string]bool{} // fields of structs in test files
	err := walkFiles(".go", func(name string) error {
		folder, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		file, err := parser.ParseFile(s.files, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		isTest := strings.HasSuffix(name, "_test.go")
		fields := s.fields
		if isTest {
			fields = ofTests
		}
		addTimes(fields, folder, file)
		if isTest || isForTests(folder) {
			s.add(folder, file, isTest)
		}
		return nil
	})
	for field := range ofTests {
		delete(s.fields, field)
	}
	return s, err
})

// addTimes adds the unexported fields of a file's structs that hold a time.
func addTimes(fields map[string]bool, folder string, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		structure, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			if kind, ok := field.Type.(*ast.SelectorExpr); !ok || !timeType.MatchString(fmt.Sprint(kind.X, ".", kind.Sel)) {
				continue
			}
			for _, name := range field.Names {
				if !name.IsExported() {
					fields[folder+"."+name.Name] = true
				}
			}
		}
		return true
	})
}

func testsOf(t *testing.T) *testSource {
	t.Helper()
	s, err := readTestSource()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// add enters the declarations of a file.
func (s *testSource) add(folder string, file *ast.File, isTest bool) {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		target, ours := inModule(strings.Trim(spec.Path.Value, `"`))
		switch {
		case !ours:
		case spec.Name != nil:
			imported[spec.Name.Name] = target
		case target == ".":
			imported["tenure"] = target
		default:
			imported[path.Base(target)] = target
		}
	}
	enter := func(name string, node ast.Node) {
		key := folder + "." + name
		s.mention(key, folder, node, imported)
		if isTest {
			s.declared[key] = append(s.declared[key], declaration{node, file, !strings.HasSuffix(file.Name.Name, "_test")})
		}
	}
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			enter(d.Name.Name, d)
			if isTest && d.Recv == nil && testFunction.MatchString("func "+d.Name.Name+"(") {
				s.tests[d.Name.Name] = append(s.tests[d.Name.Name], folder+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					enter(spec.Name.Name, spec)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						enter(name.Name, spec)
					}
				}
			}
		}
	}
}

// mention adds the names that a declaration contains.
func (s *testSource) mention(key, folder string, node ast.Node, imported map[string]string) {
	named := s.mentions[key]
	if named == nil {
		named = map[string]bool{}
		s.mentions[key] = named
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imported[x.Name] != "" {
				named[imported[x.Name]+"."+n.Sel.Name] = true
				return false
			}
		case *ast.Ident:
			named[folder+"."+n.Name] = true
		}
		return true
	})
}

// leads returns a declaration and all that it leads to.
func (s *testSource) leads(key string) map[string]bool {
	found := map[string]bool{key: true}
	for next := []string{key}; len(next) > 0; next = next[1:] {
		for name := range s.mentions[next[0]] {
			if !found[name] && (s.mentions[name] != nil || strings.HasPrefix(name, "internal/")) {
				found[name] = true
				next = append(next, name)
			}
		}
	}
	return found
}

// onServer reports whether a test with this name uses a real server, as far as its
// source shows it. Subtests count as their test.
func (s *testSource) onServer(name string) bool {
	test, _, _ := strings.Cut(name, "/")
	for _, key := range s.tests[test] {
		found := s.leads(key)
		for _, starter := range starters {
			if found[starter] {
				return true
			}
		}
	}
	return false
}

// TestTestsOnServersAreRecognized proves that the check of evidence distinguishes the
// two kinds of tests.
func TestTestsOnServersAreRecognized(t *testing.T) {
	s := testsOf(t)
	for name, want := range map[string]bool{
		"TestCrashIsNoticedInMilliseconds":                  true, // by a helper of its folder
		"TestBackendDroppedTablesEndTheSession":             true, // on several databases
		"TestOfNothing":                                     false,
		"TestSchedules":                                     false, // the simulator
		"TestScriptsMatchTranscripts/crash":                 false,
		"TestStepDownWaitsForGuards":                        false, // a backend in memory
		"TestSessionWithoutRowIsSparedForLongestLease":      false, // a function of package postgres
		"TestPackagesKeepTheirLayers":                       false, // its package uses pgtest.Long only
		"TestSessionReapsItsEarlierSessionWhileWatchIsDown": true,
	} {
		if got := s.onServer(name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}
