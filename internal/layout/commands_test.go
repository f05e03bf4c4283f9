package layout

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	program  = "cmd/tenure"
	commands = program + "/internal/cli"
)

// commandLayers are the packages of the program's commands from the bottom up, by
// folder in [commands]. A package imports from lower layers only, so families of
// commands do not import each other, except top, which shows the faults that status
// finds. The last layer composes them.
var commandLayers = [][]string{
	{"lead"},
	{"cluster", "cron", "database", "demo", "proxy", "roles", "run", "work"},
	{"top"},
	{"."},
}

// sharedLayers are packages of what the programs share that build on each other, from the
// bottom up, by folder in internal/program.
var sharedLayers = [][]string{
	{"console"},
	{"flagvalue", "settings"},
	{"connect"},
	{"service"},
	{"tree"},
}

// commandLayer is the layer of a folder, or -1 if it is not planned.
func commandLayer(folder string) int {
	name, err := filepath.Rel(commands, folder)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(commandLayers, func(names []string) bool { return slices.Contains(names, filepath.ToSlash(name)) })
}

// commandFaults lists which imports of a file of the program are not planned.
func commandFaults(s source) []string {
	if s.isTest() || !within(s.folder, program) {
		return nil
	}
	var found []string
	add := func(format string, args ...any) {
		found = append(found, filepath.Join(s.folder, s.name)+": "+fmt.Sprintf(format, args...))
	}
	level := commandLayer(s.folder)
	if within(s.folder, commands) && level < 0 {
		add("no layer is planned for this package of commands: give it one in internal/layout")
	}
	for _, path := range s.imports {
		target, ours := strings.CutPrefix(path, module+"/")
		switch {
		case s.folder == program && ours && target != commands:
			add("imports %s; the program's main package composes nothing: it imports %s only", target, commands)
		case s.folder == program || !within(target, commands):
		case level < 0:
			add("imports %s, which is not below it", target)
		case commandLayer(target) >= level:
			add("imports %s, which is not below it", target)
		}
	}
	return found
}

func TestCommandsKeepTheirLayers(t *testing.T) {
	checked := 0
	for _, s := range readSources(t) {
		if within(s.folder, commands) {
			checked++
		}
		for _, fault := range commandFaults(s) {
			t.Error(fault)
		}
	}
	if checked < 50 {
		t.Fatalf("only %d files of commands were found: the test looks in the wrong place", checked)
	}
}

func TestCommandFaultsAreFound(t *testing.T) {
	ours := func(folder string) []string { return []string{"context", module + "/" + folder} }
	for name, test := range map[string]struct {
		source source
		want   string // part of the only fault; empty if there is none
	}{
		"main imports the commands":       {source{folder: program, imports: ours(commands)}, ""},
		"main imports a family":           {source{folder: program, imports: ours(commands + "/run")}, "only"},
		"main imports the library":        {source{folder: program, imports: ours("postgres")}, "only"},
		"the root command imports all":    {source{folder: commands, imports: ours(commands + "/roles")}, ""},
		"family imports shared code":      {source{folder: commands + "/run", imports: ours(commands + "/lead")}, ""},
		"family imports a family":         {source{folder: commands + "/cron", imports: ours(commands + "/run")}, "not below it"},
		"family imports the root command": {source{folder: commands + "/cron", imports: ours(commands)}, "not below it"},
		"shared code imports a family":    {source{folder: commands + "/lead", imports: ours(commands + "/roles")}, "not below it"},
		"family imports the library":      {source{folder: commands + "/cron", imports: ours("cron")}, ""},
		"other code imports commands":     {source{folder: program + "/internal/tail", imports: ours(commands + "/lead")}, "not below it"},
		"family without a place":          {source{folder: commands + "/extra"}, "no layer is planned"},
		"test imports a family":           {source{folder: commands + "/cron", name: "x_test.go", imports: ours(commands + "/run")}, ""},
	} {
		got := commandFaults(test.source)
		ok := len(got) == 0
		if test.want != "" {
			ok = len(got) == 1 && strings.Contains(got[0], test.want)
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// What the programs share has its order too.
func TestSharedPackagesKeepTheirLayers(t *testing.T) {
	const folder = "internal/program"
	layer := func(of string) int {
		name, err := filepath.Rel(folder, of)
		if err != nil {
			return -1
		}
		return slices.IndexFunc(sharedLayers, func(names []string) bool { return slices.Contains(names, filepath.ToSlash(name)) })
	}
	checked := 0
	for _, s := range readSources(t) {
		level := layer(s.folder)
		if level < 0 || s.isTest() {
			continue
		}
		checked++
		for _, path := range s.imports {
			target, _ := strings.CutPrefix(path, module+"/")
			if target != s.folder && layer(target) >= level {
				t.Errorf("%s: imports %s, which is not below it", filepath.Join(s.folder, s.name), target)
			}
		}
	}
	if checked < 20 {
		t.Fatalf("only %d files were found: the test looks in the wrong place", checked)
	}
}

// The program on each machine contains neither the server nor what only it needs.
func TestProgramContainsNoServer(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = filepath.Join(root, program)
	output, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	packages := strings.Fields(string(output))
	if len(packages) < 200 || !slices.Contains(packages, module+"/"+commands) {
		t.Fatalf("only %d packages were found: the test looks in the wrong place", len(packages))
	}
	for _, p := range packages {
		for _, foreign := range []string{"k8s.io/", "sigs.k8s.io/", "github.com/prometheus/prometheus/", module + "/server"} {
			if strings.HasPrefix(p+"/", foreign) || strings.HasPrefix(p, foreign) {
				t.Errorf("the program contains %s", p)
			}
		}
	}
}
