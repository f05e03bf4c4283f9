package layout

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
)

const index = "docs/README.md"

var (
	codeBlock = regexp.MustCompile("(?ms)^[ \\t]*```.*?\\n[ \\t]*```[ \\t]*$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
)

// pages are the Markdown files of the repository by path, with slashes.
type pages map[string]string

func readPages(t *testing.T) pages {
	t.Helper()
	found := pages{}
	walk(t, ".md", func(file string) error {
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	return found
}

// brokenLinks lists the links of all pages that lead nowhere. exists reports
// whether the repository has a file or folder.
func brokenLinks(all pages, exists func(name string) bool) []string {
	var found []string
	for name, page := range all {
		for _, link := range docpage.Links(page) {
			file, anchor, _ := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			text, isPage := all[target]
			switch {
			case !exists(target):
				found = append(found, fmt.Sprintf("%s links to %s, which does not exist", name, link))
			case anchor != "" && isPage && !slices.Contains(docpage.Anchors(text), anchor):
				found = append(found, fmt.Sprintf("%s links to %s, but the page has no such heading", name, link))
			}
		}
	}
	slices.Sort(found)
	return found
}

// unlisted lists the pages of the documents that their index does not link to.
func unlisted(all pages) []string {
	var listed, found []string
	for _, link := range docpage.Links(all[index]) {
		file, _, _ := strings.Cut(link, "#")
		listed = append(listed, path.Join(path.Dir(index), file))
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && name != index && !slices.Contains(listed, name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func TestLinksResolve(t *testing.T) {
	all := readPages(t)
	links := 0
	for _, page := range all {
		links += len(docpage.Links(page))
	}
	if len(all) < 20 || links < 100 {
		t.Fatalf("only %d pages with %d links were found: the test looks in the wrong place", len(all), links)
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return err == nil
	}
	for _, fault := range brokenLinks(all, exists) {
		t.Error(fault)
	}
}

func TestIndexListsEveryPage(t *testing.T) {
	for _, name := range unlisted(readPages(t)) {
		t.Errorf("%s does not list %s", index, name)
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		link string
		ok   bool
	}{
		"page":                  {"b.md", true},
		"page elsewhere":        {"../README.md", true},
		"missing page":          {"c.md", false},
		"folder":                {"../cmd", true},
		"heading":               {"b.md#run-a-command", true},
		"missing heading":       {"b.md#run", false},
		"second of two":         {"b.md#run-a-command-1", true},
		"third of two":          {"b.md#run-a-command-2", false},
		"heading with code":     {"b.md#the---lease-flag", true},
		"heading with a link":   {"b.md#see-it-work", true},
		"heading in code":       {"b.md#not-a-heading", false},
		"own anchor":            {"b.md#set", true},
		"heading on this page":  {"#a", true},
		"missing on this page":  {"#b", false},
		"another site":          {"https://example.com/x#y", true},
		"line of a source file": {"../cmd#L1", true},
	} {
		all := pages{
			index:             "[a](howto/a.md#a) [b](howto/b.md)",
			"docs/howto/a.md": "# A\n\n[text](" + test.link + ") and `[code](nowhere)`\n",
			"docs/howto/b.md": "# B\n\n## Run a command\n\n## Run a command\n\n## The `--lease` flag\n\n## [See](a.md) it work\n\n" +
				"```sh\n# not a heading\n```\n\n<a id=\"set\"></a>\n",
		}
		exists := func(name string) bool {
			_, isPage := all[name]
			return isPage || name == "docs/cmd"
		}
		if got := brokenLinks(all, exists); (len(got) == 0) != test.ok {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := unlisted(pages{index: "[a](howto/a.md#a)", "docs/howto/a.md": "", "docs/howto/b.md": "", "CHANGELOG.md": ""}); !slices.Equal(got, []string{"docs/howto/b.md"}) {
		t.Errorf("unlisted pages: got %q", got)
	}
}
