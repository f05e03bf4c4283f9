package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/docpage"
)

var (
	foreign      = regexp.MustCompile(`^(?:[a-z][a-z0-9+.-]*:)?//`)
	foreignInCSS = regexp.MustCompile(`(?:@import|url\()\s*["']?(?:[a-z]+:)?//`)
)

// checker checks one version of a site.
type checker struct {
	site   fs.FS
	prefix string // the path of its first page on the server
	docs   documents
	ids    map[string][]string // of the elements of each page, by file
	faults []string
}

// check lists the faults of a built version, whose first page is at prefix: pages and
// titles that are missing, links and anchors that lead nowhere, pages that the search
// does not find, and requests to other hosts.
func check(site fs.FS, prefix string, docs documents) ([]string, error) {
	c := checker{site: site, prefix: prefix, docs: docs, ids: map[string][]string{}}
	parsed := map[string][]element{}
	texts := map[string]string{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		extension := path.Ext(name)
		if extension != ".html" && extension != ".css" {
			return nil
		}
		content, err := fs.ReadFile(site, name)
		if extension == ".css" {
			if found := foreignInCSS.Find(content); found != nil {
				c.add(name, "%q loads something from another host", found)
			}
			return err
		}
		texts[name], parsed[name] = string(content), elements(string(content))
		for _, e := range parsed[name] {
			if id := e.attributes["id"]; id != "" {
				c.ids[name] = append(c.ids[name], id)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for name, list := range parsed {
		c.checkPage(name, list)
	}
	for name, text := range docs.pages {
		c.checkDocument(strings.TrimSuffix(name, ".md")+".html", text, texts)
	}
	if err := c.checkSearch(); err != nil {
		return nil, err
	}
	slices.Sort(c.faults)
	return c.faults, nil
}

func (c *checker) add(name, format string, args ...any) {
	c.faults = append(c.faults, name+": "+fmt.Sprintf(format, args...))
}

// checkPage checks what a page loads and where it leads.
func (c *checker) checkPage(name string, list []element) {
	policy := false
	for _, e := range list {
		policy = policy || e.attributes["http-equiv"] == "Content-Security-Policy"
		for _, address := range e.loads() {
			if foreign.MatchString(address) {
				c.add(name, "<%s> loads %s from another host", e.name, address)
			}
		}
		if href, ok := e.attributes["href"]; ok && e.name == "a" {
			if fault := c.linkFault(name, href); fault != "" {
				c.add(name, "links to %q, %s", href, fault)
			}
		}
	}
	if !policy {
		c.add(name, "has no Content-Security-Policy")
	}
}

// linkFault returns why a link of a page leads nowhere, or an empty text.
func (c *checker) linkFault(page, href string) string {
	target, err := url.Parse(href)
	switch {
	case err != nil:
		return err.Error()
	case target.Scheme != "" || target.Host != "" || strings.HasSuffix(target.Path, "/versions.html"):
		return ""
	}
	name := page
	if target.Path != "" {
		here := url.URL{Path: c.prefix + page}
		rest, within := strings.CutPrefix(here.ResolveReference(target).Path, c.prefix)
		if !within {
			return "which is outside of this version"
		}
		if name = rest; name == "" || strings.HasSuffix(name, "/") {
			name += "index.html"
		}
	}
	if _, err := fs.Stat(c.site, name); err != nil {
		return "which does not exist"
	}
	if target.Fragment != "" && !slices.Contains(c.ids[name], target.Fragment) {
		return "but the page has no such anchor"
	}
	return ""
}

// checkDocument checks that a page of the documents was built, with its title and with
// GitHub's anchors.
func (c *checker) checkDocument(name, text string, built map[string]string) {
	page, ok := built[name]
	if !ok {
		c.add(name, "was not built")
		return
	}
	if title := docpage.Title(text); name != "index.html" && titleOf(page) != title+" | Tenure" {
		c.add(name, "has the title %q; want %q", titleOf(page), title+" | Tenure")
	}
	if titleOf(page) == "" {
		c.add(name, "has no title")
	}
	for _, anchor := range docpage.Anchors(text) {
		if !slices.Contains(c.ids[name], anchor) {
			c.add(name, "lacks the anchor %q that GitHub gives a heading", anchor)
		}
	}
}

// checkSearch checks that the index of the search, which the browser loads, has all
// pages.
func (c *checker) checkSearch() error {
	files, err := fs.Glob(c.site, "assets/chunks/@localSearchIndex*.js")
	if err != nil {
		return err
	}
	var index strings.Builder
	for _, file := range files {
		content, err := fs.ReadFile(c.site, file)
		if err != nil {
			return err
		}
		index.Write(content)
	}
	for _, name := range slices.Sorted(maps.Keys(c.docs.pages)) {
		address := c.prefix + strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "index")
		if name != "index.md" && !strings.Contains(index.String(), `"`+address+`.html#`) && !strings.Contains(index.String(), `"`+address+`#`) {
			c.add(name, "is not in the index of the search")
		}
	}
	return nil
}
