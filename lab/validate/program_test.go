package validate

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// root is the repository's root.
const root = "../.."

// program is the program, built as the container's recipe builds it.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "tenure-deploy")
		if err == nil {
			defer os.RemoveAll(folder)
			program = filepath.Join(folder, "tenure")
			err = build(folder)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build builds the programs into a folder with the words of the recipe, so that they are
// tried too.
func build(folder string) error {
	recipe, err := os.ReadFile(recipePath)
	if err != nil {
		return err
	}
	commands := buildCommand.FindAllString(strings.ReplaceAll(string(recipe), "\\\n", " "), -1)
	if len(commands) != 2 {
		return fmt.Errorf("%s: %d lines with go build, want one for each program", recipePath, len(commands))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, command := range commands {
		shell := exec.CommandContext(ctx, "sh", "-c", strings.Replace(command, "-o /", "-o "+folder+"/", 1))
		shell.Dir = root
		shell.Env = append(os.Environ(), "TARGETOS=", "TARGETARCH=")
		if out, err := shell.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	}
	return nil
}

var buildCommand = regexp.MustCompile(`cd (?:cmd/tenure|server) && +CGO_ENABLED=0.* go build .*`)

// TestProgramIsStatic: an empty image has no loader and no libraries.
func TestProgramIsStatic(t *testing.T) {
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %v: it is not static", segment.Type)
		}
	}
	if libraries, err := file.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("the program needs %v (%v)", libraries, err)
	}
}

// checkCommand fails the test unless the program has the command and its flags,
// whose first word is the program.
func checkCommand(t *testing.T, where string, words []string) {
	t.Helper()
	if len(words) < 2 || filepath.Base(words[0]) != "tenure" {
		t.Errorf("%s: %q does not run a command of tenure", where, words)
		return
	}
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	help, err := output(t, words[1], "--help")
	if err != nil || !strings.Contains(help, "tenure "+words[1]) {
		t.Errorf("%s: there is no command %q (%v)", where, words[1], err)
		return
	}
	for _, word := range words[2:] {
		name, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(name, "--") && !regexp.MustCompile(regexp.QuoteMeta(name)+`\s`).MatchString(help) {
			t.Errorf("%s: tenure %s has no flag %s", where, words[1], name)
		}
	}
}

// output runs the program, without what the environment says to it.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	var out bytes.Buffer
	command.Stdout = &out
	err := command.Run()
	return out.String(), err
}

// programFiles are the files that the programs are built from, relative to the root.
func programFiles(t *testing.T) string {
	t.Helper()
	const files = `{{if not .Standard}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}} {{end}}{{range .EmbedFiles}}{{$dir}}/{{.}} {{end}}{{end}}`
	var out []byte
	for folder, program := range map[string]string{"cmd/tenure": ".", "server": "./tenure-server"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", files, program)
		list.Dir = filepath.Join(root, folder)
		listed, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, listed...), ' ')
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, path := range strings.Fields(string(out)) {
		if relative, ok := strings.CutPrefix(path, top+"/"); ok {
			ours = append(ours, relative)
		}
	}
	if len(ours) < 50 {
		t.Fatalf("only %d files: the test looks in the wrong place", len(ours))
	}
	return strings.Join(ours, " ")
}
