package main

import (
	"io/fs"
	"path"
	"strings"
)

const (
	folder     = "docs"
	indexPage  = folder + "/README.md"
	readme     = "README.md"
	repository = "https://github.com/exactly-one/tenure"
)

// documents are the pages of one version, as VitePress reads them.
type documents struct {
	menu   []section
	pages  map[string]string // by path on the site, with .md
	images map[string][]byte // by path on the site
}

// readDocuments reads the pages from the repository's root folder and converts them.
func readDocuments(root fs.FS, version string) (documents, error) {
	docs := documents{pages: map[string]string{}, images: map[string][]byte{}}
	err := fs.WalkDir(root, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if path.Ext(name) != ".md" {
			docs.images[sitePath(name)] = content
			return err
		}
		docs.pages[sitePath(name)] = converter{root, name, version}.page(string(content))
		return err
	})
	if err != nil {
		return documents{}, err
	}
	index, err := fs.ReadFile(root, indexPage)
	if err != nil {
		return documents{}, err
	}
	docs.menu = menuOf(string(index))
	first, err := fs.ReadFile(root, readme)
	if err != nil {
		return documents{}, err
	}
	docs.pages["index.md"], err = landing(converter{root, readme, version}.page(string(first)), docs.menu)
	return docs, err
}

// sitePath is the path of a file of the documents on the site. The index of a folder
// is its first page; that of all documents is not, because the site begins with the
// README.
func sitePath(name string) string {
	name = strings.TrimPrefix(name, folder+"/")
	switch {
	case name == readme:
		return "contents.md"
	case path.Base(name) == readme:
		return path.Join(path.Dir(name), "index.md")
	}
	return name
}
