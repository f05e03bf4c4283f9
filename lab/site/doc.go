// Command site builds the site of the documents from the same Markdown that GitHub
// shows, with VitePress, and checks what was built:
//
//	go run ./lab/site [-version=v0.1.0] [-base=/] [-out=dist/site]
//
// Each version has its folder. The command changes only what differs between GitHub
// and the site: the names of index pages, and links to files that are no pages of the
// documents, which lead to the repository. The menu follows docs/README.md, and the
// first page follows the README.
//
// The packages of VitePress are installed once, from npm, by the locked versions in
// the folder vitepress. They are not dependencies of any module.
package main
