package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link       = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	makeTarget = regexp.MustCompile(`(?m)(?:^|[\x60 ])make ([a-z-]+)`)
	ruleName   = regexp.MustCompile(`(?m)^([a-z-]+):`)
	matrixLine = regexp.MustCompile(`(?m)^\s+target: \[(.+)\]`)
)

// readPage returns a file of the repository as text.
func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The pages for contributors name files that exist and targets that the Makefile
// has; so does the workflow of the hosted CI.
func TestPagesForContributorsNameWhatExists(t *testing.T) {
	var rules []string
	for _, rule := range ruleName.FindAllStringSubmatch(readPage(t, "Makefile"), -1) {
		rules = append(rules, rule[1])
	}
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "THREAT_MODEL.md", ".github/workflows/ci.yml", ".github/pull_request_template.md"} {
		text := readPage(t, page)
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, found[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, found[1])
			}
		}
		targets := makeTarget.FindAllStringSubmatch(text, -1)
		for _, matrix := range matrixLine.FindAllStringSubmatch(text, -1) {
			for target := range strings.SplitSeq(matrix[1], ",") {
				targets = append(targets, []string{"", strings.Fields(target)[0]})
			}
		}
		for _, found := range targets {
			if !slices.Contains(rules, found[1]) {
				t.Errorf("%s names the target %q, which the Makefile does not have", page, found[1])
			}
		}
	}
}

// The page that shows the layers has every layer of the plan, from the bottom up.
func TestArchitectureShowsEveryLayer(t *testing.T) {
	_, picture, found := strings.Cut(readPage(t, "ARCHITECTURE.md"), "```mermaid")
	picture, _, ends := strings.Cut(picture, "```\n")
	if !found || !ends {
		t.Fatal("ARCHITECTURE.md has no picture of the packages")
	}
	for _, layer := range layers {
		for _, folder := range layer {
			if strings.HasPrefix(folder, "internal/") || slices.Contains([]string{".", "deploy", "examples"}, folder) {
				continue
			}
			if !strings.Contains(picture, folder) {
				t.Errorf("the picture in ARCHITECTURE.md lacks %s", folder)
			}
		}
	}
}
