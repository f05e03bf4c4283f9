package dashboard

import (
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxSize is what all that a browser loads may weigh together.
const maxSize = 300_000

// The assets are small, refer to no other server, and need nothing that the
// content policy forbids.
func TestAssetsFollowContentPolicy(t *testing.T) {
	t.Parallel()
	forbidden := map[string]*regexp.Regexp{
		"refers to another host": regexp.MustCompile(`(?:https?:)?//[a-z0-9-]+\.[a-z]`),
		"makes markup of a text": regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment`),
		"runs a text":            regexp.MustCompile(`\beval\(|new Function|javascript:|setTimeout\(["'` + "`]"),
		"is inline":              regexp.MustCompile(`<script>|<style|\sstyle="|\son[a-z]+="`),
		"loads a font or more":   regexp.MustCompile(`@import|@font-face|url\(`),
	}
	namespace := strings.NewReplacer("http://www.w3.org/2000/svg", "") // a name, not an address
	size := 0
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := assets.ReadFile("assets/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		size += len(content)
		for what, pattern := range forbidden {
			if found := pattern.FindString(namespace.Replace(string(content))); found != "" {
				t.Errorf("%s %s: %q", entry.Name(), what, found)
			}
		}
		if types[path.Ext(entry.Name())] == "" {
			t.Errorf("%s has no type", entry.Name())
		}
	}
	t.Logf("%d files of %d bytes", len(entries), size)
	if size > maxSize || size < 10_000 {
		t.Errorf("all files together have %d bytes; at most %d", size, maxSize)
	}
}

func TestUnchangedAssetIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	first, _ := w.request(http.MethodGet, "/assets/app.js", "")
	again, text := w.request(http.MethodGet, "/assets/app.js", "", "If-None-Match", first.Header.Get("ETag"))
	if first.StatusCode != http.StatusOK || again.StatusCode != http.StatusNotModified || text != "" {
		t.Errorf("%s, then %s with %d bytes", first.Status, again.Status, len(text))
	}
}
