package cli

import (
	"net/http"
	"strings"
	"testing"
)

// The page and a node that only watches do not count toward --min-nodes, and /readyz
// says so. A node that works does.
func TestMinNodesOfCommandsCountsNodesThatWork(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	page := launch(t, place.with("serve", "--listen", "127.0.0.1:0", "--name", "page", "--node-role", "worker", "--log-level", "info")...)
	page.awaitLog("session opened")
	place.run(t, "--role", "billing", "--name", "viewer", "--no-leader", "--log-level", "info").awaitLog("session opened")
	waits := place.run(t, "--role", "billing", "--name", "waits", "--min-nodes", "2", "--listen", "127.0.0.1:0", "--log-level", "info")
	base := served(waits)
	const want = "1 of 2 nodes has joined: waits; not counted: page (observer), viewer (observer)"
	var status int
	var answer string
	eventually(t, "the node waits for another: "+want, func() bool {
		status, answer = fetch(t, http.MethodGet, base+"/readyz", "")
		return status == http.StatusOK || strings.Contains(answer, want)
	})
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, want) {
		t.Errorf("/readyz answers %d %q; want 503 with %q", status, answer, want)
	}
	place.run(t, "--role", "billing", "--name", "works", "--node-role", "worker", "--log-level", "info").awaitLog("session opened")
	eventually(t, "two nodes that work suffice", func() bool {
		status, _ := fetch(t, http.MethodGet, base+"/readyz", "")
		return status == http.StatusOK
	})
}
