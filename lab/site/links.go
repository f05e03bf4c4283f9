package main

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/exactly-one/tenure/internal/docpage"
)

// converter changes the links of one page, which work on GitHub, to links that work
// on the site.
type converter struct {
	root    fs.FS
	name    string // of the page in the repository
	version string // whose files links to the repository show
}

func (c converter) page(text string) string { return docpage.MapLinks(text, c.link) }

func (c converter) link(target string) string {
	file, anchor, hasAnchor := strings.Cut(target, "#")
	if file == "" {
		return target
	}
	file = path.Join(path.Dir(c.name), file)
	if hasAnchor {
		anchor = "#" + anchor
	}
	if strings.HasPrefix(file, folder+"/") && path.Ext(file) != "" {
		return relative(c.name, file) + anchor
	}
	kind := "blob"
	if info, err := fs.Stat(c.root, file); err == nil && info.IsDir() {
		kind = "tree"
	}
	return repository + "/" + kind + "/" + c.version + "/" + file + anchor
}

// relative is the path on the site from a page to a file of the documents. The
// README is the first page of the site.
func relative(page, file string) string {
	from := "."
	if page != readme {
		from = path.Dir(sitePath(page))
	}
	target, err := filepath.Rel(from, sitePath(file))
	if err != nil {
		return sitePath(file) // both are relative, so this does not happen
	}
	if target = filepath.ToSlash(target); strings.HasPrefix(target, ".") {
		return target
	}
	return "./" + target
}
