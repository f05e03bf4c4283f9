package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"
)

//go:embed assets
var assets embed.FS

// types are the media types of the served files by extension, independent of the
// machine's configuration.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// version is a digest of all files: a page from before an upgrade reloads.
var version = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(assets, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assets.ReadFile(name)
		_, _ = sum.Write(content) // never fails
		return err
	})
	if err != nil {
		panic(err) // they are embedded
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
})

// assetRoutes serve each embedded file under its own path; no other path exists.
// Browsers cache them and revalidate.
func assetRoutes() (all []route) {
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		panic(err) // they are embedded
	}
	for _, entry := range entries {
		content, err := assets.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		pattern := "GET /assets/" + entry.Name()
		if entry.Name() == "index.html" {
			pattern = "GET /{$}"
		}
		sum := sha256.Sum256(content)
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", types[path.Ext(entry.Name())])
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", tag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		})
		all = append(all, route{pattern, serve})
		if entry.Name() == "icon.svg" { // browsers ask for it beside an answer that is no page
			all = append(all, route{"GET /favicon.ico", serve})
		}
	}
	return all
}
