package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// section is a part of the menu: pages of one kind.
type section struct {
	Text      string `json:"text"`
	Details   string `json:"details,omitempty"`
	Collapsed bool   `json:"collapsed"`
	Items     []item `json:"items"`
}

// item is a page in the menu, or a group of pages.
type item struct {
	Text  string `json:"text"`
	Link  string `json:"link,omitempty"`
	Items []item `json:"items,omitempty"`
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]*)\)`)

// menuOf returns the menu in the order of the index of the documents: a section for
// each heading, with groups where the index has a table with a column for each group.
// A link to a part of a page is left out.
func menuOf(index string) []section {
	var menu []section
	listed := map[string]bool{}
	for _, part := range strings.Split(index, "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		text, details, _ := strings.Cut(title, ":")
		items := groupsOf(body, listed)
		if items == nil {
			items = itemsOf(body, listed)
		}
		if len(items) > 0 {
			menu = append(menu, section{Text: text, Details: strings.TrimSpace(details), Items: items})
		}
	}
	return menu
}

// groupsOf returns a group for each column of the table in a text, or nil if there is
// no table.
func groupsOf(text string, listed map[string]bool) []item {
	var groups []item
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
		case groups == nil:
			for _, cell := range cells {
				groups = append(groups, item{Text: capital(strings.TrimSpace(cell))})
			}
		default:
			for i, cell := range cells[:min(len(cells), len(groups))] {
				groups[i].Items = append(groups[i].Items, itemsOf(cell, listed)...)
			}
		}
	}
	return slices.DeleteFunc(groups, func(g item) bool { return len(g.Items) == 0 })
}

// itemsOf lists the pages of the documents that a text of the index links to and that
// are not listed yet.
func itemsOf(text string, listed map[string]bool) []item {
	var items []item
	for _, match := range markdownLink.FindAllStringSubmatch(text, -1) {
		name := path.Join(folder, match[2])
		if path.Ext(name) != ".md" || !strings.HasPrefix(name, folder+"/") || listed[name] {
			continue
		}
		listed[name] = true
		items = append(items, item{Text: capital(match[1]), Link: pageLink(sitePath(name))})
	}
	return items
}

// pageLink is how VitePress names a page, by its path on the site.
func pageLink(name string) string {
	return "/" + strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "index")
}

// capital begins a title of several words with a capital letter. Names of programs
// keep their case.
func capital(title string) string {
	if !strings.Contains(title, " ") {
		return title
	}
	return strings.ToUpper(title[:1]) + title[1:]
}

// firstLink is the first page of a section.
func (s section) firstLink() string {
	if len(s.Items) == 0 {
		return "/contents"
	}
	first := s.Items[0]
	if first.Link == "" {
		first = first.Items[0]
	}
	return first.Link
}
