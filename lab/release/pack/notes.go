package pack

import (
	"regexp"
	"strings"
)

// Notes makes the notes of a release from its section of the changelog, without the
// heading.
func Notes(section, version string) []byte {
	return AbsoluteLinks([]byte(strings.TrimSpace(unwrapped(section))+"\n"), version)
}

// continued is the end of a line that the next one continues.
var continued = regexp.MustCompile(`(\S)\n +([^\s*-])`)

// unwrapped joins the lines of each entry: pages of releases show line ends.
func unwrapped(text string) string { return continued.ReplaceAllString(text, "$1 $2") }

// reference is what a link or an image refers to, in Markdown or HTML.
var reference = regexp.MustCompile(`(?m)(\]\(|^\[[^\]]+\]: |src="|srcset=")([^)"\s]+)`)

// AbsoluteLinks makes links of a page in the root folder work outside of the
// repository: they lead to the files of a version.
func AbsoluteLinks(page []byte, version string) []byte {
	return reference.ReplaceAllFunc(page, func(match []byte) []byte {
		parts := reference.FindSubmatch(match)
		target := string(parts[2])
		if strings.HasPrefix(target, "#") || strings.Contains(target, ":") {
			return match
		}
		kind := "/blob/"
		if strings.HasSuffix(target, ".png") || strings.HasSuffix(target, ".svg") {
			kind = "/raw/" // an image, not the page that shows it
		}
		return []byte(string(parts[1]) + homepage + kind + version + "/" + target)
	})
}
