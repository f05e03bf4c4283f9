package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// commonNames declares the variables that all pages use without a declaration. A fragment
// that declares one of them hides it.
const commonNames = `
var (
	ctx      context.Context
	err      error
	node     *tenure.Node
	election *tenure.Election
	term     *tenure.Term
	pool     *pgxpool.Pool
	tx       pgx.Tx
	backend  *postgres.Backend
	member   *cluster.Member
	w        http.ResponseWriter
	r        *http.Request
	mux      *http.ServeMux
)
`

// storeName declares the variable store of most pages. On others it is the package
// lease/store.
const storeName = "\nvar store *eventstore.Store\n"

// knownImports are the packages of other projects, and of ours with ambiguous names, that
// fragments use without an import. The name is the last element of the path, unless a
// space separates another one.
var knownImports = []string{
	"context", "crypto/tls", "database/sql", "encoding/json", "errors", "fmt", "io", "log", "log/slog", "net/http", "os",
	"os/signal", "slices", "strings", "syscall", "testing", "time",
	"github.com/jackc/pgx/v5 pgx", "github.com/jackc/pgx/v5/pgxpool", "github.com/jackc/pgx/v5/stdlib", "github.com/google/uuid",
	"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_golang/prometheus/promhttp",
	"github.com/riverqueue/river", "k8s.io/client-go/tools/leaderelection", "github.com/uptrace/bun", "gorm.io/gorm",
	"github.com/jmoiron/sqlx", module + "/lease/store",
}

// notStubbed are errors about what a fragment leaves out or does not use, and what the go
// command says about modules that it has to fetch first.
var notStubbed = regexp.MustCompile(`^go: downloading |undefined: \w+$|declared and not used|imported (as \w+ )?and not used|label .* defined and not used|missing return`)

// TestGoFragmentsTypeCheck compiles every fragment. A missing name has the type that
// commonNames declares. Any other undefined name is no fault and fits everywhere.
func TestGoFragmentsTypeCheck(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	_, fragments := goBlocks(t)
	faults := compileFragments(t, fragments)
	for _, fault := range faults {
		t.Error(fault)
	}
}

func TestFaultyFragmentsDoNotTypeCheck(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for text, want := range map[string]string{
		"term.Number(1)\n":                       "too many arguments",
		"err = node.Closed(ctx)\n":               "node.Closed undefined",
		"c := tenure.Config{Nam: \"a\"}\n":       "unknown field Nam",
		"var s string = term.Number()\n":         "cannot use term.Number()",
		"x := missing(ctx, other)\nx.Do(term)\n": "",
		"return work(ctx)\n":                     "",
		"func f(t *tenure.Term) { ... }\n":       "",
	} {
		faults := compileFragments(t, map[string]string{"page.md:1": text})
		if ok := len(faults) == 1 && strings.Contains(faults[0], want); want == "" && len(faults) > 0 || want != "" && !ok {
			t.Errorf("%q: got %q, want %q", text, faults, want)
		}
	}
}

// compileFragments returns the faults of fragments by place, with one command.
func compileFragments(t *testing.T, fragments map[string]string) []string {
	t.Helper()
	known := importsByName(t)
	blocks := map[string]string{}
	for place, text := range fragments {
		program, err := stubbed(place, ellipsis.ReplaceAllString(text, "{ panic(0) }"), known)
		if err != nil {
			t.Errorf("%s: %v", place, err)
			continue
		}
		blocks[place] = program
	}
	command := blockCommand(t, blocks, "build", "-gcflags=-e", "./...")
	output, err := command.CombinedOutput()
	if err != nil && len(output) == 0 {
		t.Fatal(err)
	}
	var faults []string
	for line := range strings.Lines(string(output)) {
		details := strings.HasPrefix(line, "\t") // of the line before
		line = strings.TrimSpace(line)
		if line != "" && !details && !strings.HasPrefix(line, "#") && !notStubbed.MatchString(line) {
			faults = append(faults, line)
		}
	}
	return faults
}

// stubbed makes a fragment a file: with the imports that it needs, with commonNames, and in
// a function if it has statements.
func stubbed(place, text string, known map[string]string) (string, error) {
	imports, rest := splitImports(text)
	body := rest
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+rest, parser.SkipObjectResolution)
	head, tail := "", ""
	if err != nil {
		file, err = parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+rest+"\n}", parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		head, tail = "func _() "+resultsOf(file)+" {\n", "\n\tpanic(0)\n}\n"
	}
	declared := commonNames
	if !strings.Contains(rest, "store.New(") {
		declared += storeName
	}
	common, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+declared, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var program strings.Builder
	program.WriteString("package p\n" + imports)
	names := append(selected(file), selected(common)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		importPath, ok := known[name]
		if name == "store" && declared != commonNames {
			continue
		}
		if ok && !strings.Contains(imports, `"`+importPath+`"`) {
			fmt.Fprintf(&program, "import %s %q\n", name, importPath)
		}
	}
	program.WriteString(declared + head + "//line " + place + "\n" + body + tail)
	return program.String(), nil
}

// resultsOf returns the results of the function around statements, by how many values
// they return.
func resultsOf(file *ast.File) string {
	results := ""
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			results = [...]string{"", "error", "(any, error)"}[min(len(n.Results), 2)]
		}
		return true
	})
	return results
}

// selected lists the names from which a file selects.
func selected(file *ast.File) []string {
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				names = append(names, name.Name)
			}
		}
		return true
	})
	return names
}

// importsByName returns the packages that fragments use without an import.
func importsByName(t *testing.T) map[string]string {
	t.Helper()
	known := map[string]string{}
	for name, folder := range ourFolders(t) {
		known[name] = path.Join(module, folder)
	}
	for _, entry := range knownImports {
		importPath, name, found := strings.Cut(entry, " ")
		if !found {
			name = path.Base(importPath)
		}
		known[name] = importPath
	}
	return known
}

// ourFolders lists the public packages by their names, without ambiguous ones.
func ourFolders(t *testing.T) map[string]string {
	t.Helper()
	folders := map[string]string{}
	for _, s := range readSources(t) {
		folder := filepath.ToSlash(s.folder)
		if s.isTest() || strings.Contains("/"+folder+"/", "/internal/") || slices.Contains([]string{"cmd", "lab", "deploy", "examples"}, strings.Split(folder, "/")[0]) {
			continue
		}
		name := path.Base(folder)
		if folder == "." {
			name = "tenure"
		}
		if !slices.Contains(ambiguous, name) {
			folders[name] = folder
		}
	}
	if len(folders) < 15 {
		t.Fatalf("only %q were found: the test looks in the wrong place", slices.Sorted(maps.Keys(folders)))
	}
	return folders
}
