package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// TestServeLoginRequired: what tells of the cluster is for those who are known, by
// whichever path; the health of the node is for everybody.
func TestServeLoginRequired(t *testing.T) {
	t.Parallel()
	place := place{pgtest.Start(t, pgtest.Options{}), "public"}
	const token = "0123456789abcdef"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, place.with("serve", "--listen", ":0", "--login-required", "--token-file", file, "--log-level", "info")...)
	base := served(p)
	if line, _ := p.line(); line != "serving "+base+"/" {
		t.Errorf("%q is printed", line)
	}
	for _, path := range []string{"/healthz", "/readyz", "/leader?role=metrics_aggregator"} {
		eventually(t, path, func() bool {
			status, _ := fetch(t, http.MethodGet, base+path, "")
			return status == http.StatusOK
		})
	}
	for _, path := range []string{
		"/metrics", "/metrics/cluster", "/v1/elections", "/v1/leaders", "/v1/leaders/metrics_aggregator", "/v1/cluster", "/v1/nodes",
		"/v1/nodes/x", "/v1/nodes/watch", "/v1/events", "/v1/openapi.json",
	} {
		if status, answer := fetch(t, http.MethodGet, base+path, ""); status != http.StatusUnauthorized || strings.Contains(answer, "metrics_aggregator") {
			t.Errorf("%s: %d: %s", path, status, answer)
		}
	}
	if status, _ := fetch(t, http.MethodGet, base+"/v1/nodes", "", "Authorization", "Bearer wrong-wrong-wrong"); status != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", status)
	}
	for path, want := range map[string]string{
		"/metrics": "tenure_leader_is_leader", "/metrics/cluster": "tenure_aggregator_is_leader", "/v1/leaders": "metrics_aggregator",
	} {
		if status, answer := fetch(t, http.MethodGet, base+path, "", "Authorization", "Bearer "+token); status != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("%s with the token: %d: %s", path, status, answer)
		}
	}
}
