package layout

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	ownRequirement = regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + `\S* (v\S+)`)
	ownReplacement = regexp.MustCompile(`(?m)^(?:replace)?\s*` + regexp.QuoteMeta(module) + `\S*( v\S+)? => (\S+)`)
	makeModules    = regexp.MustCompile(`(?m)^MODULES := (.*)$`)
	goDirective    = regexp.MustCompile(`(?m)^go (\S+)$`)
)

// TestModulesCanBeInstalled: no module replaces another one of ours, and all
// require the same version of the library, which the workspaces have.
func TestModulesCanBeInstalled(t *testing.T) {
	versions, directives := map[string]bool{}, map[string]bool{}
	for _, file := range filesNamed(t, "go.mod") {
		text := readFile(t, file)
		if found := ownReplacement.FindString(text); found != "" {
			t.Errorf("%s: no user could install a module with %q", file, strings.TrimSpace(found))
		}
		for _, found := range ownRequirement.FindAllStringSubmatch(text, -1) {
			versions[found[1]] = true
			if strings.HasPrefix(found[1], "v0.0.0") {
				t.Errorf("%s requires %s, which will never be published", file, found[1])
			}
		}
		if found := goDirective.FindStringSubmatch(text); found != nil {
			directives[found[1]] = true
		}
	}
	if len(versions) != 1 {
		t.Errorf("the modules require the versions %v of ours; want one", slices.Sorted(maps.Keys(versions)))
	}
	if len(directives) != 1 {
		t.Errorf("the modules need Go %v; want one version", slices.Sorted(maps.Keys(directives)))
	}
	for _, file := range filesNamed(t, "go.work") {
		for _, found := range ownReplacement.FindAllStringSubmatch(readFile(t, file), -1) {
			if !versions[strings.TrimSpace(found[1])] {
				t.Errorf("%s replaces version%s, which no module requires", file, found[1])
			}
		}
	}
}

// TestMakefileKnowsAllModules: lint and test run in every module.
func TestMakefileKnowsAllModules(t *testing.T) {
	found := makeModules.FindStringSubmatch(readFile(t, "Makefile"))
	if found == nil {
		t.Fatal("the Makefile has no list of modules")
	}
	var want []string
	for _, file := range filesNamed(t, "go.mod") {
		want = append(want, filepath.ToSlash(filepath.Dir(file)))
	}
	got := slices.Sorted(strings.FieldsSeq(found[1]))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("modules of the Makefile: %v; want %v", got, want)
	}
}

// filesNamed lists the files of the repository with a name, relative to its root.
func filesNamed(t *testing.T, name string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "testdata", "bin", "dist", "tmp"}, entry.Name()) {
			return fs.SkipDir
		}
		if entry.Name() == name {
			relative, err := filepath.Rel(root, path)
			files = append(files, relative)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
