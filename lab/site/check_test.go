package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	head    = `<head><meta http-equiv="Content-Security-Policy" content="default-src 'none'">`
	goodA   = `<html>` + head + `<title>A &amp; B | Tenure</title></head><h1 id="a--b">A</h1><a href="/x/main/b.html#c">b</a><a href="#a--b">a</a><a href="/x/main/">first</a><a href="https://example.com">e</a><img src="/x/main/assets/i.png"></html>`
	goodB   = `<html>` + head + `<title>C | Tenure</title></head><h1 id="c">C</h1><script>if (a<b) {"<a href=\"/no\">"}</script></html>`
	goodCSS = `@font-face { src: url(/x/main/assets/inter.woff2) }`
)

func TestFaultsOfSiteAreFound(t *testing.T) {
	t.Parallel()
	docs := documents{pages: map[string]string{"index.md": "", "a.md": "# A & B\n", "b.md": "# C\n"}}
	good := map[string]string{
		"index.html": `<html>` + head + `<title>Tenure</title></head></html>`, "a.html": goodA, "b.html": goodB, "assets/style.css": goodCSS,
		"assets/chunks/@localSearchIndexroot.x.js": `{"0":"/x/main/a.html#a--b","1":"/x/main/b.html#c"}`,
	}
	for name, test := range map[string]struct {
		file, old, replacement string
		want                   string // part of the only fault; empty if there is none
	}{
		"no fault":              {want: ""},
		"missing page":          {"a.html", "/b.html#c", "/d.html", "does not exist"},
		"missing anchor":        {"a.html", "b.html#c", "b.html#d", "no such anchor"},
		"missing on this page":  {"a.html", `href="#a--b"`, `href="#d"`, "no such anchor"},
		"another version":       {"a.html", `href="/x/main/"`, `href="/x/v0.1.0/"`, "outside of this version"},
		"relative link":         {"a.html", `href="/x/main/"`, `href="./b.html#c"`, ""},
		"missing relative page": {"a.html", `href="/x/main/"`, `href="c.html"`, "does not exist"},
		"foreign image":         {"a.html", `src="/x`, `src="https://example.com/x`, "another host"},
		"foreign script":        {"b.html", "<script>", `<script src="//example.com/x.js">`, "another host"},
		"foreign style":         {"b.html", "</head>", `<link rel="stylesheet" href="https://example.com/x.css"></head>`, "another host"},
		"foreign source":        {"b.html", "</head>", `</head><source srcset="/x/a.png 1x, https://example.com/b.png 2x">`, "another host"},
		"foreign font":          {"assets/style.css", "url(/x", "url('https://example.com/x", "another host"},
		"no policy":             {"b.html", "Content-Security-Policy", "refresh", "no Content-Security-Policy"},
		"another title":         {"b.html", "C | Tenure", "D | Tenure", "has the title"},
		"first page's title":    {"index.html", "<title>Tenure", "<title>", "has no title"},
		"another anchor":        {"a.html", `<h1 id="a--b">`, `<h1 id="a-b"><p id="a--b-">`, "lacks the anchor"},
		"page not searched":     {"assets/chunks/@localSearchIndexroot.x.js", "b.html", "bb.html", "not in the index"},
		"page that is not made": {"b.html", "", "", "was not built"},
	} {
		site := fstest.MapFS{}
		for file, content := range maps.All(good) {
			if file == test.file {
				content = strings.Replace(content, test.old, test.replacement, 1)
			}
			site[file] = &fstest.MapFile{Data: []byte(content)}
		}
		if test.file != "" && test.old == "" {
			delete(site, test.file)
		}
		faults, err := check(site, "/x/main/", docs)
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, test.want) })
		if found != (test.want != "") {
			t.Errorf("%s: got %q, want %q", name, faults, test.want)
		}
	}
}

func TestVersionsAreListed(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for _, version := range []string{"v0.9.0", "main", "v0.10.0", "v0.10.0-rc.2", "v0.10.0-rc.10"} {
		if err := os.Mkdir(filepath.Join(out, version), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := listVersions(out); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(out, "versions.html"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range elements(string(list)) {
		if e.name == "a" {
			got = append(got, e.attributes["href"])
		}
	}
	if want := []string{"v0.10.0/", "v0.10.0-rc.10/", "v0.10.0-rc.2/", "v0.9.0/", "main/"}; !slices.Equal(got, want) {
		t.Errorf("the list has %q, want %q", got, want)
	}
	first, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || !strings.Contains(string(first), `content="0; url=v0.10.0/"`) {
		t.Errorf("the first page does not lead to the newest release: %v\n%s", err, first)
	}
}

func TestSettingsAreValidated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version, base string
		valid         bool
	}{
		{"main", "/", true}, {"v0.1.0", "/tenure/", true}, {"v0.1.0-rc.1", "/", true},
		{"0.1.0", "/", false}, {"../x", "/", false}, {"v0.1.0/..", "/", false}, {"main", "tenure", false}, {"main", "//x/", false},
	} {
		if err := (settings{version: test.version, base: test.base}).validate(); (err == nil) != test.valid {
			t.Errorf("version %q, base %q: got %v, valid is %v", test.version, test.base, err, test.valid)
		}
	}
}
