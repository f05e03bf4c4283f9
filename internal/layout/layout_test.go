// Package layout holds the project to its own plan: which package may import
// which, and how long a file may grow.
package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root     = "../.."
	module   = "github.com/exactly-one/tenure"
	maxLines = 500
)

// layers are the packages from the bottom up, by folder; a folder represents
// what is in it too. Code imports from lower layers only, and within its own
// folder.
var layers = [][]string{
	{"clocks"},
	{"internal/fsm", "internal/sentinel", "internal/endreason", "internal/preference", "internal/timespan", "retry", "internal/sandbox", "internal/printable", "internal/httpguard", "internal/usercode", "internal/openlimit", "internal/steps", "internal/together", "internal/grantee"},
	{"internal/pgserver", "internal/feed", "internal/wakeup", "internal/logqueue"},
	{"."},
	{"dberr", "doctor", "history", "internal/singlerole"},
	{"internal/installation", "internal/pgdial", "internal/doorbell", "internal/reach"},
	{"internal/schema"},
	{"internal/features", "internal/leaderwatch", "internal/incident"},
	{"postgres", "lease", "tenuretest", "agent", "internal/sessiontest", "internal/audit"},
	{"cluster", "cron", "processor", "leaderhttp", "slots", "internal/sweeps"},
	{"eventstore", "outbox", "view", "assign"},
	{"metrics"},
	{"retention", "internal/program"},
	{"cmd/tenure", "server", "deploy", "examples", "adapters"},
	{laboratory},
}

// forTests are folders that only tests and benchmarks import, and themselves.
var forTests = []string{
	"internal/testkit", "internal/pgtest", "internal/postgrestest", "internal/mariatest", "internal/faultwire", "internal/hostile", "internal/children", "internal/netns", "internal/docpage", "internal/statements", "internal/sessiontest", "internal/outboxtest", "internal/sampletest", "internal/simcalls", "internal/steplog", "internal/layout", "internal/together",
	"internal/interruption", "internal/gates", "internal/promises", "internal/managed", "internal/observer", "lease/leasetest",
}

// laboratory is the module of what proves the product. The product does not import it,
// and its tests do not either: what both need is in internal.
const laboratory = "lab"

// rootMayImport is all that the root package may import in addition to the standard
// library: no database driver, above all.
var rootMayImport = []string{
	"github.com/google/uuid", module + "/internal/fsm", module + "/internal/sentinel", module + "/internal/endreason", module + "/internal/preference", module + "/internal/timespan", module + "/internal/usercode", module + "/internal/logqueue", module + "/internal/openlimit", module + "/internal/steps", module + "/internal/wakeup", module + "/clocks", module + "/retry",
}

// source is what matters here of one file.
type source struct {
	folder    string // relative to the repository's root
	name      string
	imports   []string
	lines     int
	generated bool
}

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

func TestPackagesKeepTheirLayers(t *testing.T) {
	sources := readSources(t)
	if len(sources) < 20 {
		t.Fatalf("only %d Go files were found: the test looks in the wrong place", len(sources))
	}
	for _, s := range sources {
		for _, fault := range faults(s) {
			t.Error(fault)
		}
	}
}

// faults lists what is wrong with a file.
func faults(s source) []string {
	var found []string
	add := func(format string, args ...any) {
		found = append(found, filepath.Join(s.folder, s.name)+": "+fmt.Sprintf(format, args...))
	}
	if s.lines > maxLines && !s.generated {
		add("%d lines; at most %d", s.lines, maxLines)
	}
	for _, path := range s.imports {
		if target, ours := inModule(path); ours && within(target, laboratory) && !within(s.folder, laboratory) {
			add("imports %s, which is of the laboratory", target)
		}
	}
	if s.isTest() {
		return found
	}
	level := layerOf(s.folder)
	if level < 0 && !isForTests(s.folder) {
		add("no layer is planned for this folder: give it one in internal/layout")
	}
	for _, path := range s.imports {
		if s.folder == "." && !isStandard(path) && !slices.Contains(rootMayImport, path) {
			add("the root package must not import %s", path)
		}
		target, ours := inModule(path)
		if !ours || within(target, laboratory) || within(s.folder, topFolder(target)) && !isForTests(target) {
			continue
		}
		switch {
		case isForTests(target) && !isForTests(s.folder) && !within(s.folder, laboratory):
			add("imports %s, which is for tests", target)
		case level >= 0 && layerOf(target) >= level && !isForTests(target):
			add("imports %s, which is not below it", target)
		}
	}
	return found
}

// within reports whether a folder is another or lies in it. Nothing lies in the
// root folder but its own files.
func within(folder, other string) bool {
	return folder == other || other != "." && strings.HasPrefix(folder, other+"/")
}

func layerOf(folder string) int {
	return slices.IndexFunc(layers, func(folders []string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return within(folder, f) })
	})
}

func isForTests(folder string) bool {
	return slices.ContainsFunc(forTests, func(f string) bool { return within(folder, f) })
}

// topFolder is the folder of a package that layers speak of.
func topFolder(folder string) string {
	for _, prefix := range []string{"internal/", "cmd/"} {
		if rest, ok := strings.CutPrefix(folder, prefix); ok {
			top, _, _ := strings.Cut(rest, "/")
			return prefix + top
		}
	}
	top, _, _ := strings.Cut(folder, "/")
	return top
}

func inModule(path string) (folder string, ok bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func readSources(t *testing.T) []source {
	t.Helper()
	var sources []source
	walk(t, ".go", func(path string) error {
		s, err := read(path)
		sources = append(sources, s)
		return err
	})
	return sources
}

// walk calls read for every file of the repository that has the extension.
func walk(t *testing.T, extension string, read func(path string) error) {
	t.Helper()
	if err := walkFiles(extension, read); err != nil {
		t.Fatal(err)
	}
}

func walkFiles(extension string, read func(path string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "testdata", "bin", "dist", "tmp", "node_modules"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != extension:
			return nil
		}
		return read(path)
	})
}

func read(path string) (source, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	folder, err := filepath.Rel(root, filepath.Dir(path))
	s := source{
		folder: filepath.ToSlash(folder), name: filepath.Base(path),
		lines: files.File(file.FileStart).LineCount(), generated: ast.IsGenerated(file),
	}
	for _, spec := range file.Imports {
		s.imports = append(s.imports, strings.Trim(spec.Path.Value, "`\""))
	}
	return s, err
}

func TestFaultsAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		source source
		want   string // part of the only fault; empty if there is none
	}{
		"root imports its state machine":     {source{folder: ".", imports: []string{"time", module + "/internal/fsm"}}, ""},
		"root imports a driver":              {source{folder: ".", imports: []string{"github.com/jackc/pgx/v5"}}, "must not import"},
		"backend imports root":               {source{folder: "postgres", imports: []string{module}}, ""},
		"backend imports its own parts":      {source{folder: "lease", imports: []string{module + "/lease/sqlite"}}, ""},
		"part imports its backend":           {source{folder: "lease/sqlite", imports: []string{module + "/lease"}}, ""},
		"backend imports a backend":          {source{folder: "lease", imports: []string{module + "/postgres"}}, "not below it"},
		"state machine imports root":         {source{folder: "internal/fsm", imports: []string{module}}, "not below it"},
		"backend imports upwards":            {source{folder: "postgres", imports: []string{module + "/cluster"}}, "not below it"},
		"upper layer skips one":              {source{folder: "outbox", imports: []string{module, module + "/processor"}}, ""},
		"the program imports all":            {source{folder: "cmd/tenure", imports: []string{module + "/internal/program/console", module + "/internal/pgserver"}}, ""},
		"the program imports the server":     {source{folder: "cmd/tenure", imports: []string{module + "/server/dashboard"}}, "not below it"},
		"the server imports the program":     {source{folder: "server/internal/serve", imports: []string{module + "/cmd/tenure/internal/cli"}}, "not below it"},
		"the shared part imports a program":  {source{folder: "internal/program/config", imports: []string{module + "/server/dashboard"}}, "not below it"},
		"library imports the program":        {source{folder: "metrics", imports: []string{module + "/cmd/tenure"}}, "not below it"},
		"library imports a test folder":      {source{folder: "postgres", imports: []string{module + "/internal/pgtest"}}, "for tests"},
		"test imports a test folder":         {source{folder: "postgres", name: "x_test.go", imports: []string{module + "/internal/pgtest"}}, ""},
		"laboratory imports a test folder":   {source{folder: "lab/chaos", imports: []string{module + "/internal/faultwire"}}, ""},
		"laboratory imports a program":       {source{folder: "lab/chaos", imports: []string{module + "/server/dashboard"}}, ""},
		"laboratory imports its own parts":   {source{folder: "lab/chaos", imports: []string{module + "/lab/chaos/check"}}, ""},
		"library imports the laboratory":     {source{folder: "metrics", imports: []string{module + "/lab/sim"}}, "of the laboratory"},
		"test of the library imports it":     {source{folder: "metrics", name: "x_test.go", imports: []string{module + "/lab/sim"}}, "of the laboratory"},
		"test folder imports the laboratory": {source{folder: "internal/pgtest", imports: []string{module + "/lab/sim"}}, "of the laboratory"},
		"test folder imports another":        {source{folder: "lease/leasetest", imports: []string{module + "/internal/sessiontest"}}, ""},
		"backend imports its tests":          {source{folder: "lease", imports: []string{module + "/lease/leasetest"}}, "for tests"},
		"folder without a place":             {source{folder: "helpers"}, "no layer is planned"},
		"long file":                          {source{folder: "cron", lines: maxLines + 1}, "501 lines"},
		"full file":                          {source{folder: "cron", lines: maxLines}, ""},
		"long generated file":                {source{folder: "cron", lines: 9999, generated: true}, ""},
		"long test":                          {source{folder: "cron", name: "x_test.go", lines: maxLines + 1}, "501 lines"},
	} {
		got := faults(test.source)
		ok := len(got) == 0
		if test.want != "" {
			ok = len(got) == 1 && strings.Contains(got[0], test.want)
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
