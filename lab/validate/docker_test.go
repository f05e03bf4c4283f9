package validate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const recipePath = root + "/deploy/docker/Dockerfile"

// instruction is one instruction of a recipe.
type instruction struct {
	stage int
	word  string // in capitals
	rest  string
}

// readRecipe reads a Dockerfile: comments are left out, continued lines joined.
func readRecipe(t *testing.T) []instruction {
	t.Helper()
	text, err := os.ReadFile(recipePath)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields("FROM WORKDIR COPY RUN ARG ENV USER EXPOSE HEALTHCHECK ENTRYPOINT CMD")
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	stage := -1
	var all []instruction
	for line := range strings.Lines(joined) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(known, word) || strings.TrimSpace(rest) == "" {
			t.Fatalf("not an instruction: %q", line)
		}
		if word == "FROM" {
			stage++
		}
		if stage < 0 {
			t.Fatalf("%s comes before FROM", word)
		}
		all = append(all, instruction{stage, word, strings.TrimSpace(rest)})
	}
	return all
}

// last returns what follows the last instruction of a kind in the last stage, in which the
// image runs, or in the stage that it is made from.
func last(recipe []instruction, word string) string {
	stage, names := recipe[len(recipe)-1].stage, map[string]int{}
	for _, i := range recipe {
		if _, name, named := strings.Cut(i.rest, " AS "); named && i.word == "FROM" {
			names[name] = i.stage
		}
	}
	for {
		found, from := "", ""
		for _, i := range recipe {
			if i.stage != stage {
				continue
			}
			if i.word == word {
				found = i.rest
			}
			if i.word == "FROM" {
				from, _, _ = strings.Cut(i.rest, " AS ")
			}
		}
		before, isStage := names[from]
		if !isStage || found != "" && word != "FROM" {
			base, _, _ := strings.Cut(found, " AS ")
			return base
		}
		stage = before
	}
}

func TestImageRunsWithoutRoot(t *testing.T) {
	recipe := readRecipe(t)
	if got := last(recipe, "FROM"); got != "scratch" {
		t.Errorf("the image is made from %s", got)
	}
	if user := last(recipe, "USER"); !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Errorf("USER is %q: Kubernetes sees only of a number that it is not root", user)
	}
	if got := last(recipe, "ENTRYPOINT"); got != `["/tenure"]` {
		t.Errorf("ENTRYPOINT is %s", got)
	}
	_, check, found := strings.Cut(last(recipe, "HEALTHCHECK"), "CMD ")
	var words []string
	if err := json.Unmarshal([]byte(check), &words); !found || err != nil {
		t.Fatalf("HEALTHCHECK is no list of words: %q (%v)", check, err)
	}
	checkCommand(t, "HEALTHCHECK", words)
	module, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if len(version) < 2 || !strings.Contains(recipe[0].rest, "golang:"+string(version[1])+" ") {
		t.Errorf("the builder is %q, the module needs Go %s", recipe[0].rest, version)
	}
}

// TestCopiedSourcesExist: sources are there and not ignored, and what a later
// stage copies an earlier one has made.
func TestCopiedSourcesExist(t *testing.T) {
	ignored := ignoredPatterns(t)
	for _, i := range readRecipe(t) {
		if i.word != "COPY" {
			continue
		}
		words := slices.DeleteFunc(strings.Fields(i.rest), func(word string) bool { return strings.HasPrefix(word, "--chown") })
		if strings.HasPrefix(words[0], "--from=") {
			if words[0] != "--from=build" && words[0] != "--from=build-server" {
				t.Errorf("COPY %s: there is no such stage", i.rest)
			}
			continue
		}
		for _, source := range words[:len(words)-1] {
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("COPY %s: %v", i.rest, err)
			}
			if source != "." && isIgnored(ignored, source) {
				t.Errorf("COPY %s: .dockerignore leaves it out", i.rest)
			}
		}
	}
}

// TestIgnoredFilesAreNotNeeded: no file of the program is left out of the build.
func TestIgnoredFilesAreNotNeeded(t *testing.T) {
	ignored := ignoredPatterns(t)
	for _, path := range strings.Fields(programFiles(t)) {
		if isIgnored(ignored, path) {
			t.Errorf(".dockerignore leaves out %s", path)
		}
	}
	for _, path := range []string{".git/config", "docs/README.md", "node_test.go", "lease/testdata/x", "bin/tenure"} {
		if !isIgnored(ignored, path) {
			t.Errorf(".dockerignore lets %s in", path)
		}
	}
}

func ignoredPatterns(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			patterns = append(patterns, line)
		}
	}
	return patterns
}

// isIgnored reports whether the last pattern that means a path, or a folder that
// it is in, leaves it out. Of what patterns can be, only what this repository uses
// is understood.
func isIgnored(patterns []string, path string) bool {
	ignored := false
	for _, pattern := range patterns {
		rest, exception := strings.CutPrefix(pattern, "!")
		if means(rest, path) {
			ignored = !exception
		}
	}
	return ignored
}

// means reports whether a pattern matches a path or a folder that it is in.
func means(pattern, path string) bool {
	rest, anywhere := strings.CutPrefix(pattern, "**/")
	for ; path != "."; path = filepath.Dir(path) {
		name := path
		if anywhere {
			name = filepath.Base(path)
		}
		if matches, err := filepath.Match(rest, name); err != nil || matches {
			return true
		}
	}
	return false
}

// TestRecipeHasTheWorkspace: the builder has the workspace that the recipe names,
// and so the library of this repository.
func TestRecipeHasTheWorkspace(t *testing.T) {
	ignored := ignoredPatterns(t)
	recipe, err := os.ReadFile(recipePath)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`GOWORK=\$PWD/\.\./\.\./(\S+)`).FindSubmatch(recipe)
	if named == nil {
		t.Fatal("the recipe names no workspace")
	}
	for _, path := range []string{string(named[1]), string(named[1]) + ".sum"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
		if isIgnored(ignored, path) {
			t.Errorf(".dockerignore leaves out %s", path)
		}
	}
}
