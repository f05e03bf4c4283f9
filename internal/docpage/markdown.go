package docpage

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block of code on a page.
type Block struct {
	Language string
	Text     string // without the fence and its indentation
	Line     int    // of the first line of the text, from 1
}

var (
	fence = regexp.MustCompile("^([ \\t]*)```([\\w-]*)")
	// indentedCode is the first line of a block. It is no item of a list.
	indentedCode = regexp.MustCompile(`^( {4,})(?:[^\s*|-]|\*/)`)
	codeBlock    = regexp.MustCompile("(?ms)^[ \\t]*```.*?\\n[ \\t]*```[ \\t]*$")
	code         = regexp.MustCompile("(?ms)^[ \\t]*```.*?\\n[ \\t]*```[ \\t]*$|`[^`\n]*`")
	linkTarget   = regexp.MustCompile(`\]\(([^)\s]*)(?:\s+"[^"]*")?\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlAnchor   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	schemeOf     = regexp.MustCompile(`^[a-z]+:`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// Blocks lists the fenced blocks of code on a page.
func Blocks(page string) []Block {
	var found []Block
	var open *Block
	indentation := ""
	for number, line := range strings.Split(page, "\n") {
		marks := fence.FindStringSubmatch(line)
		switch {
		case open == nil && marks != nil:
			open, indentation = &Block{Language: marks[2], Line: number + 2}, marks[1]
		case open != nil && marks != nil:
			found, open = append(found, *open), nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indentation) + "\n"
		}
	}
	return found
}

// Indented lists the blocks of code on a page that indentation marks, without language.
// Such a block follows an empty line.
func Indented(page string) []Block {
	var found []Block
	var open *Block
	fenced, empty, indentation := false, true, ""
	for number, line := range strings.Split(page, "\n") {
		if fence.MatchString(line) {
			fenced, open = !fenced, nil
		}
		marks := indentedCode.FindStringSubmatch(line)
		switch {
		case fenced || strings.TrimSpace(line) == "":
		case open == nil && marks != nil && empty:
			found = append(found, Block{Line: number + 1})
			open, indentation = &found[len(found)-1], marks[1]
		case open != nil && !strings.HasPrefix(line, indentation):
			open = nil
		}
		if empty = strings.TrimSpace(line) == ""; open != nil && !empty {
			open.Text += strings.TrimPrefix(line, indentation) + "\n"
		}
	}
	return found
}

// MapProse returns a page with change applied to the parts that are not code.
func MapProse(page string, change func(prose string) string) string {
	var mapped strings.Builder
	from := 0
	for _, at := range code.FindAllStringIndex(page, -1) {
		mapped.WriteString(change(page[from:at[0]]))
		mapped.WriteString(page[at[0]:at[1]])
		from = at[1]
	}
	mapped.WriteString(change(page[from:]))
	return mapped.String()
}

// MapLinks returns a page with change applied to the targets of its relative links
// and images, except those in code.
func MapLinks(page string, change func(target string) string) string {
	return MapProse(page, func(prose string) string {
		return linkTarget.ReplaceAllStringFunc(prose, func(match string) string {
			target := linkTarget.FindStringSubmatch(match)[1]
			if schemeOf.MatchString(target) {
				return match
			}
			return "](" + change(target) + strings.TrimPrefix(match, "]("+target)
		})
	})
}

// Links lists the relative links of a page, without those in code.
func Links(page string) []string {
	var found []string
	MapLinks(page, func(target string) string {
		found = append(found, target)
		return target
	})
	return found
}

// Title is the first heading of a page.
func Title(page string) string {
	found := heading.FindStringSubmatch(codeBlock.ReplaceAllString(page, ""))
	if found == nil {
		return ""
	}
	return strings.ReplaceAll(linkText.ReplaceAllString(found[1], "$1"), "`", "")
}

// Anchors lists the anchors that GitHub gives to the headings of a page, and those
// that the page sets itself.
func Anchors(page string) []string {
	var found []string
	seen := map[string]int{}
	text := codeBlock.ReplaceAllString(page, "")
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		title := strings.TrimRight(strings.TrimSpace(match[1]), " #")
		title = linkText.ReplaceAllString(title, "$1")
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		count := seen[anchor]
		seen[anchor]++
		if count > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, count)
		}
		found = append(found, anchor)
	}
	for _, match := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}
