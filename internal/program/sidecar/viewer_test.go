package sidecar

import (
	"net/http"
	"regexp"
	"testing"
)

const viewerSecret = "viewer-secret-0123456789"

// TestViewersTokenChangesNothing: with the viewers' token, every request of the
// description that changes something answers 403, and the output of a run is readable.
func TestViewersTokenChangesNothing(t *testing.T) {
	t.Parallel()
	viewers, err := OpenToken(writeFile(t, "viewers", viewerSecret), silent)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, Config{Token: newToken(t), ViewerToken: viewers})
	doc, err := described()
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\{\w+\}`)
	changes := 0
	for template, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			path := names.ReplaceAllString(template, "1")
			if method != http.MethodGet {
				changes++
				call(t, h, method, path, "", "Authorization", "Bearer "+viewerSecret).refused(t, 403, codeViewer)
			}
		}
	}
	if changes < 15 {
		t.Errorf("the description has %d requests that change something", changes)
	}
	call(t, h, http.MethodGet, "/v1/schedule-runs/1", "", "Authorization", "Bearer "+viewerSecret).refused(t, 503, codeStarting) // there is no node
	call(t, h, http.MethodGet, "/v1/schedule-runs/1", "", "Authorization", "Bearer wrong").refused(t, 401, codeUnauthorized)
	call(t, h, http.MethodPost, stepDownPath, "", authorized...).refused(t, 503, codeStarting)
}

// TestTokenOfBothFilesIsAViewers: a token that is in both files may not change anything.
func TestTokenOfBothFilesIsAViewers(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Token: newToken(t), ViewerToken: newToken(t)})
	call(t, h, http.MethodPost, stepDownPath, "", authorized...).refused(t, 403, codeViewer)
}
