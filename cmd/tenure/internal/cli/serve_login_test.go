package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Everything about the cluster needs a login, on every path; the health of the
// node does not.
func TestServeLoginProtectsCluster(t *testing.T) {
	pgtest.Long(t)
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
	for _, path := range []string{"/healthz", "/readyz", "/leader?role=metrics-aggregator"} {
		eventually(t, path, func() bool {
			status, _ := fetch(t, http.MethodGet, base+path, "")
			return status == http.StatusOK
		})
	}
	for _, path := range []string{
		"/metrics", "/metrics/cluster", "/v1/elections", "/v1/leaders", "/v1/leaders/metrics-aggregator", "/v1/cluster", "/v1/nodes",
		"/v1/nodes/x", "/v1/nodes/watch", "/v1/events", "/v1/openapi.json",
	} {
		if status, answer := fetch(t, http.MethodGet, base+path, ""); status != http.StatusUnauthorized || strings.Contains(answer, "metrics-aggregator") {
			t.Errorf("%s: %d: %s", path, status, answer)
		}
	}
	if status, _ := fetch(t, http.MethodGet, base+"/v1/nodes", "", "Authorization", "Bearer wrong-wrong-wrong"); status != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", status)
	}
	for path, want := range map[string]string{
		"/metrics": "tenure_leader_is_leader", "/metrics/cluster": "tenure_aggregator_is_leader", "/v1/leaders": "metrics-aggregator",
	} {
		if status, answer := fetch(t, http.MethodGet, base+path, "", "Authorization", "Bearer "+token); status != http.StatusOK || !strings.Contains(answer, want) {
			t.Errorf("%s with the token: %d: %s", path, status, answer)
		}
	}
	checkUncleanPath(t, base)
	replaced := checkRevocation(t, base, file, token)
	first, last := 0, 0
	for range httpguard.MaxAttempts + 1 { // on one path and counted on all
		last, _ = fetch(t, http.MethodPost, base+"/v1/elections/x/step-down", "", "Authorization", "Bearer wrong-wrong-wrong")
		if first == 0 {
			first = last
		}
	}
	if first != http.StatusUnauthorized || last != http.StatusTooManyRequests {
		t.Errorf("the first guess: %d, the last: %d", first, last)
	}
	for _, path := range []string{"/metrics", "/v1/leaders", "/api/now"} {
		if status, _ := fetch(t, http.MethodGet, base+path, "", "Authorization", "Bearer "+replaced); status != http.StatusTooManyRequests {
			t.Errorf("%s after guesses elsewhere: %d", path, status)
		}
	}
	if status, _ := fetch(t, http.MethodGet, base+"/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz after guesses: %d", status)
	}
}

// checkUncleanPath checks that //x redirects nowhere else.
func checkUncleanPath(t *testing.T, base string) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"//x", "//evil.example/%2e%2e", "/a/../b", "/./x"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//" + r.URL.Host + path // unchanged
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNotFound || response.Header.Get("Location") != "" {
			t.Errorf("%s: %s to %q", path, response.Status, response.Header.Get("Location"))
		}
	}
}

// checkRevocation checks that a stream of events ends when its token is replaced.
func checkRevocation(t *testing.T, base, file, token string) (replaced string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("following with the token: %s", response.Status)
	}
	replaced = "another-token-of-16"
	if err := os.WriteFile(file, []byte(replaced), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(text), "revoked") {
		t.Errorf("the stream of a token that was replaced: %v, %q", err, text)
	}
	return replaced // the new token is valid, the old one is not
}
