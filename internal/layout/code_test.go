package layout

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/internal/pgtest"
)

var (
	completeCode = regexp.MustCompile(`(?m)\A(?://.*\n|\n)*package `)
	inWorkspace  = regexp.MustCompile(`(?m)(^\t|=> )\.`)
	ellipsis     = regexp.MustCompile(`\{ \.\.\. \}`)
)

// ambiguous are packages whose names fragments use for variables or for packages of
// other projects.
var ambiguous = []string{"gocron", "kubernetes", "nats", "server", "store"}

// goBlocks lists the blocks of Go in the README and the documents by page and line.
func goBlocks(t *testing.T) (complete, fragments map[string]string) {
	t.Helper()
	complete, fragments = map[string]string{}, map[string]string{}
	for name, page := range readPages(t) {
		if name != "README.md" && !strings.HasPrefix(name, "docs/") {
			continue
		}
		for _, block := range docpage.Blocks(page) {
			place := fmt.Sprintf("%s:%d", name, block.Line)
			switch {
			case block.Language != "go":
			case completeCode.MatchString(block.Text):
				complete[place] = block.Text
			default:
				fragments[place] = block.Text
			}
		}
	}
	return complete, fragments
}

// TestCompleteGoBlocksCompile vets every block that begins with a package clause, with
// one command.
func TestCompleteGoBlocksCompile(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	complete, _ := goBlocks(t)
	if len(complete) < 3 {
		t.Fatalf("only %d complete blocks were found: the test looks in the wrong place", len(complete))
	}
	if output, err := vetBlocks(t, complete); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestFaultyGoBlockDoesNotCompile(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	const program = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(missing) }\n"
	output, err := vetBlocks(t, map[string]string{"page.md:1": program})
	if err == nil || !strings.Contains(output, "undefined: missing") {
		t.Errorf("the block has a fault; got %v\n%s", err, output)
	}
}

func vetBlocks(t *testing.T, blocks map[string]string) (string, error) {
	t.Helper()
	marked := map[string]string{}
	for place, text := range blocks {
		marked[place] = "//line " + place + "\n" + text
	}
	output, err := blockCommand(t, marked, "vet", "./...").CombinedOutput()
	return string(output), err
}

// blockCommand returns a command of go for programs, each in a separate package of a
// module that joins a copy of the workspace.
func blockCommand(t *testing.T, blocks map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	workspace := inWorkspace.ReplaceAllString(readFile(t, "go.work"), "${1}"+filepath.ToSlash(base)+"/.")
	files := map[string]string{
		"go.work":     strings.Replace(workspace, "use (", "use (\n\t.", 1),
		"go.work.sum": readFile(t, "go.work.sum"),
		"go.mod":      "module blocks\n\n" + goDirective.FindString(workspace) + "\n",
	}
	for i, place := range slices.Sorted(maps.Keys(blocks)) {
		files[fmt.Sprintf("block%d/main.go", i)] = blocks[place]
	}
	for name, text := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK="+filepath.Join(folder, "go.work"))
	return command
}

// TestGoFragmentsParse: a fragment is declarations or statements in gofmt's format,
// and names only what our packages export. "{ ... }" is a body that is left out.
func TestGoFragmentsParse(t *testing.T) {
	t.Parallel()
	_, fragments := goBlocks(t)
	if len(fragments) < 50 {
		t.Fatalf("only %d fragments were found: the test looks in the wrong place", len(fragments))
	}
	exports := ourExports(t)
	for place, text := range fragments {
		for _, fault := range fragmentFaults(text, exports) {
			t.Errorf("%s: %s", place, fault)
		}
	}
}

func TestFaultsOfFragmentsAreFound(t *testing.T) {
	t.Parallel()
	exports := map[string][]string{"cron": {"New"}}
	for text, want := range map[string]string{
		"s := cron.New(node)\n":                 "",
		"import \"x\"\n\ns := cron.New()\n":     "",
		"func f() { ... }\n":                    "",
		"s := cron.New(\n":                      "expected",
		"s:=cron.New(node)\n":                   "gofmt",
		"s := cron.Old(node)\n":                 "cron.Old",
		"cron := start()\ncron.Old()\n":         "",
		"func f(cron *Cron) { cron.Old() }\n":   "",
		"var c = cron.Config{Interval: time}\n": "cron.Config",
	} {
		got := fragmentFaults(text, exports)
		if ok := len(got) == 1 && strings.Contains(got[0], want); want == "" && len(got) > 0 || want != "" && !ok {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// fragmentFaults lists the faults of a fragment.
func fragmentFaults(text string, exports map[string][]string) []string {
	text = ellipsis.ReplaceAllString(text, "{ panic(0) }")
	imports, rest := splitImports(text)
	for _, part := range []string{imports, rest} {
		formatted, err := format.Source([]byte(part))
		if err != nil {
			return []string{err.Error()}
		}
		if strings.TrimSpace(string(formatted)) != strings.TrimSpace(part) {
			return []string{"is not in the format of gofmt"}
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+rest, parser.SkipObjectResolution)
	if err != nil {
		file, err = parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+rest+"\n}", parser.SkipObjectResolution)
	}
	if err != nil {
		return []string{err.Error()}
	}
	return unknownNames(file, exports)
}

// splitImports separates the import declaration at the beginning of a fragment, which
// can be followed by statements.
func splitImports(text string) (imports, rest string) {
	if !strings.HasPrefix(text, "import ") {
		return "", text
	}
	end := "\n"
	if strings.HasPrefix(text, "import (") {
		end = "\n)\n"
	}
	imports, rest, _ = strings.Cut(text, end)
	return imports + end, rest
}

// unknownNames lists what a file selects from a package of ours that does not export
// it. A variable of the same name hides the package.
func unknownNames(file *ast.File, exports map[string][]string) []string {
	hidden := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for _, left := range node.Lhs {
				if ident, ok := left.(*ast.Ident); ok && node.Tok == token.DEFINE {
					hidden[ident.Name] = true
				}
			}
		case *ast.Field:
			for _, ident := range node.Names {
				hidden[ident.Name] = true
			}
		case *ast.ValueSpec:
			for _, ident := range node.Names {
				hidden[ident.Name] = true
			}
		}
		return true
	})
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name, ok := selector.X.(*ast.Ident)
		if !ok || hidden[name.Name] {
			return true
		}
		if names, ours := exports[name.Name]; ours && !slices.Contains(names, selector.Sel.Name) {
			found = append(found, fmt.Sprintf("%s.%s does not exist", name.Name, selector.Sel.Name))
		}
		return true
	})
	return found
}

// ourExports lists what the public packages export, by the name of the package. Packages of the same
// name count as one, and ambiguous names are left out.
func ourExports(t *testing.T) map[string][]string {
	t.Helper()
	exports := map[string][]string{}
	walk(t, ".go", func(file string) error {
		folder, err := filepath.Rel(root, filepath.Dir(file))
		folder = filepath.ToSlash(folder)
		if err != nil || strings.HasSuffix(file, "_test.go") || strings.Contains("/"+folder+"/", "/internal/") || slices.Contains([]string{"cmd", "lab", "deploy", "examples"}, strings.Split(folder, "/")[0]) {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := parsed.Name.Name
		if name == "main" || slices.Contains(ambiguous, name) {
			return nil
		}
		exports[name] = append(exports[name], exportedNames(parsed)...)
		return nil
	})
	if len(exports) < 15 {
		t.Fatalf("only %d packages were found: the test looks in the wrong place", len(exports))
	}
	return exports
}
