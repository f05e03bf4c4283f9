package main

import (
	"html"
	"regexp"
	"strings"
)

// element is an element of a page that VitePress wrote. The generator quotes and
// escapes all values of attributes, so patterns find the elements.
type element struct {
	name       string
	attributes map[string]string
}

var (
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
	scriptText = regexp.MustCompile(`(?s)(<script[^>]*>).*?</script>`)
	startTag   = regexp.MustCompile(`<([a-zA-Z][\w-]*)((?:\s+[^\s"'<>/=]+(?:="[^"]*")?)*)\s*/?>`)
	attribute  = regexp.MustCompile(`([^\s"'<>/=]+)(?:="([^"]*)")?`)
	titleText  = regexp.MustCompile(`<title>([^<]*)</title>`)
)

// elements lists the elements of a page.
func elements(page string) []element {
	page = scriptText.ReplaceAllString(comment.ReplaceAllString(page, ""), "$1")
	var found []element
	for _, tag := range startTag.FindAllStringSubmatch(page, -1) {
		e := element{strings.ToLower(tag[1]), map[string]string{}}
		for _, pair := range attribute.FindAllStringSubmatch(tag[2], -1) {
			e.attributes[pair[1]] = html.UnescapeString(pair[2])
		}
		found = append(found, e)
	}
	return found
}

// titleOf returns the title of a page.
func titleOf(page string) string {
	found := titleText.FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}

// loads lists the addresses that a browser loads for an element without being asked.
func (e element) loads() []string {
	var found []string
	for _, name := range []string{"src", "poster", "data"} {
		if value := e.attributes[name]; value != "" {
			found = append(found, value)
		}
	}
	for candidate := range strings.SplitSeq(e.attributes["srcset"], ",") {
		if address, _, _ := strings.Cut(strings.TrimSpace(candidate), " "); address != "" {
			found = append(found, address)
		}
	}
	if href := e.attributes["href"]; href != "" && e.name == "link" && e.attributes["rel"] != "canonical" {
		found = append(found, href)
	}
	return found
}
