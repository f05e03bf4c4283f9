package main

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/exactly-one/tenure/internal/docpage"
)

const root = "../.."

func readAll(t *testing.T, version string) documents {
	t.Helper()
	docs, err := readDocuments(os.DirFS(root), version)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func (i item) links() []string {
	found := []string{i.Link}
	for _, page := range i.Items {
		found = append(found, page.links()...)
	}
	return found
}

// The menu has the sections in the order of the index, and every page once.
func TestMenuHasEveryPage(t *testing.T) {
	t.Parallel()
	docs := readAll(t, unreleased)
	var sections, links []string
	for _, s := range docs.menu {
		sections = append(sections, s.Text)
		links = append(links, item{Items: s.Items}.links()...)
	}
	want := []string{"Tutorials", "How-to guides", "Reference", "Explanation", "Coming from another system"}
	if !slices.Equal(sections, want) {
		t.Errorf("the menu has the sections %q, want %q", sections, want)
	}
	if len(docs.pages) < 40 {
		t.Fatalf("only %d pages were found: the test looks in the wrong place", len(docs.pages))
	}
	for name := range docs.pages {
		times := 0
		for _, link := range links {
			if link == pageLink(name) {
				times++
			}
		}
		if name != "contents.md" && name != "index.md" && times != 1 {
			t.Errorf("the menu has %s %d times; docs/README.md must link to the page itself, not only to a part of it", name, times)
		}
	}
}

func TestMenuFollowsIndex(t *testing.T) {
	t.Parallel()
	menu := menuOf("# Index\n\n[Guide](howto/a.md)\n\n## How-to guides: reach a goal\n\n| for developers | for operators |\n|---|---|\n" +
		"| [A](howto/a.md) | [B](howto/b.md) |\n| [Part of A](howto/a.md#x) | [C](howto/c.md) |\n\n" +
		"## Coming from\n\n[a loop](coming-from/README.md), [River](coming-from/river.md)\n\n## More\n\n[Code](../cmd/x.md)\n")
	want := []section{
		{Text: "How-to guides", Details: "reach a goal", Items: []item{
			{Text: "For developers", Items: []item{{Text: "A", Link: "/howto/a"}}},
			{Text: "For operators", Items: []item{{Text: "B", Link: "/howto/b"}, {Text: "C", Link: "/howto/c"}}},
		}},
		{Text: "Coming from", Items: []item{{Text: "A loop", Link: "/coming-from/"}, {Text: "River", Link: "/coming-from/river"}}},
	}
	if len(menu) != len(want) {
		t.Fatalf("got %+v, want %+v", menu, want)
	}
	for i, s := range menu {
		same := slices.EqualFunc(s.Items, want[i].Items, func(a, b item) bool {
			return a.Text == b.Text && slices.Equal(a.links(), b.links())
		})
		if s.Text != want[i].Text || s.Details != want[i].Details || !same {
			t.Errorf("section %d is %+v, want %+v", i, s, want[i])
		}
	}
}

func TestLinksAreConverted(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"deploy/a.yaml": {}, "cmd/main.go": {}}
	for name, test := range map[string]struct{ page, link, want string }{
		"page":                {"docs/howto/a.md", "b.md#c", "./b.md#c"},
		"page elsewhere":      {"docs/howto/a.md", "../reference/b.md", "../reference/b.md"},
		"this page":           {"docs/howto/a.md", "#c", "#c"},
		"index of documents":  {"docs/howto/a.md", "../README.md", "../contents.md"},
		"index of a folder":   {"docs/README.md", "coming-from/README.md#x", "./coming-from/index.md#x"},
		"from such an index":  {"docs/coming-from/README.md", "river.md", "./river.md"},
		"image":               {"docs/howto/a.md", "../images/b.png", "../images/b.png"},
		"file":                {"docs/howto/a.md", "../../deploy/a.yaml", repository + "/blob/v1.2.3/deploy/a.yaml"},
		"folder":              {"docs/howto/a.md", "../../deploy", repository + "/tree/v1.2.3/deploy"},
		"the README":          {"docs/README.md", "../README.md#limits", repository + "/blob/v1.2.3/README.md#limits"},
		"page of the README":  {"README.md", "docs/howto/a.md", "./howto/a.md"},
		"index of the README": {"README.md", "docs/README.md", "./contents.md"},
		"code of the README":  {"README.md", "cmd/main.go", repository + "/blob/v1.2.3/cmd/main.go"},
	} {
		if got := (converter{files, test.page, "v1.2.3"}).link(test.link); got != test.want {
			t.Errorf("%s: %s becomes %s, want %s", name, test.link, got, test.want)
		}
	}
}

// Every link of the converted pages leads to another one, to an image or to the
// repository.
func TestConvertedLinksResolve(t *testing.T) {
	t.Parallel()
	docs := readAll(t, "v1.2.3")
	links := 0
	for name, text := range docs.pages {
		for _, link := range docpage.Links(text) {
			links++
			file, _, _ := strings.Cut(link, "#")
			target := path.Join(path.Dir(name), file)
			_, isPage := docs.pages[target]
			_, isImage := docs.images[target]
			if file != "" && !isPage && !isImage {
				t.Errorf("%s links to %s, which is not on the site", name, link)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found: the test looks in the wrong place", links)
	}
}

// The first page begins as the README does.
func TestFirstPageFollowsReadme(t *testing.T) {
	t.Parallel()
	docs := readAll(t, unreleased)
	page := docs.pages["index.md"]
	for _, want := range []string{
		`"text": "At most one leader at a time, on the PostgreSQL you already run."`, "If the leader crashes,",
		`src="./images/demo-light.svg"`, `src="./images/demo-dark.svg"`, "\nmake demo ", "\nmake test ",
		`"title": "Tutorials"`, `"title": "How-to guides"`, `"title": "Reference"`, `"title": "Explanation"`, `"link": "/tutorial/first-leader"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the first page lacks %q", want)
		}
	}
	if _, err := landing("# Tenure\n\nNo picture.\n", docs.menu); err == nil {
		t.Error("a first page was made of a README without a picture, want an error")
	}
}

func TestStagedFilesAreComplete(t *testing.T) {
	t.Parallel()
	docs, folder := readAll(t, unreleased), t.TempDir()
	if err := stage(folder, docs, siteData{Base: "/main/", Menu: docs.menu}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.md", "contents.md", "coming-from/index.md", "howto/lead.md", "images/demo-dark.svg", ".vitepress/config.mjs", ".vitepress/site.json"} {
		if _, err := fs.Stat(os.DirFS(folder), name); err != nil {
			t.Error(err)
		}
	}
}
