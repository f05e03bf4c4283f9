package main

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var number = regexp.MustCompile(`\d+`)

// listVersions writes the list of the versions in a folder, and its first page, which
// leads to the newest release.
func listVersions(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var versions []string
	for _, entry := range entries {
		if entry.IsDir() {
			versions = append(versions, entry.Name())
		}
	}
	slices.SortFunc(versions, newerFirst)
	if err := os.WriteFile(filepath.Join(out, "versions.html"), []byte(versionList(versions)), 0o644); err != nil {
		return err
	}
	newest := html.EscapeString(versions[0])
	first := fmt.Sprintf(plainPage, "Tenure", `<meta http-equiv="refresh" content="0; url=`+newest+`/">`, `<p><a href="`+newest+`/">Documents of Tenure `+newest+`</a></p>`)
	return os.WriteFile(filepath.Join(out, "index.html"), []byte(first), 0o644)
}

func versionList(versions []string) string {
	var list strings.Builder
	for _, version := range versions {
		name := html.EscapeString(version)
		label := name
		if version == unreleased {
			label += ", not released"
		}
		fmt.Fprintf(&list, "<li><a href=\"%s/\">%s</a></li>\n", name, label)
	}
	return fmt.Sprintf(plainPage, "Versions of Tenure's documents", "", "<h1>Versions</h1>\n<ul>\n"+list.String()+"</ul>")
}

// newerFirst orders versions: releases by their numbers, a release before its
// candidates, and what is not released at the end.
func newerFirst(a, b string) int {
	if order := cmp.Compare(btoi(b != unreleased), btoi(a != unreleased)); order != 0 {
		return order
	}
	coreA, preA, _ := strings.Cut(a, "-")
	coreB, preB, _ := strings.Cut(b, "-")
	return cmp.Or(
		slices.Compare(numbers(coreB), numbers(coreA)),
		cmp.Compare(btoi(preB == ""), btoi(preA == "")),
		slices.Compare(numbers(preB), numbers(preA)),
		strings.Compare(b, a),
	)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func numbers(text string) []int {
	var found []int
	for _, digits := range number.FindAllString(text, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			n = 0 // too large to be a version
		}
		found = append(found, n)
	}
	return found
}

// plainPage is a page without scripts: its title, more of its head, and its body.
const plainPage = `<!DOCTYPE html>
<html lang="en-US">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
%s
</head>
<body>
%s
</body>
</html>
`
