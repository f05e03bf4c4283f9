package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
)

// TestServeSeparatesViewersFromOperators: users of the configuration file and the tokens of both
// files log in to a server that runs; viewers read the API and the page and change nothing,
// and the audit has what operators changed.
func TestServeSeparatesViewersFromOperators(t *testing.T) {
	t.Parallel()
	place := place{pgtest.Start(t, pgtest.Options{}), "public"}
	folder := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const operators, viewers, password = "the-token-of-operators", "the-token-of-viewers", "correct horse battery"
	config := file("tenure.toml", "[http]\ntoken_file = '"+file("token", operators)+"'\nviewer_token_file = '"+file("viewers", viewers)+"'\nhsts = '1h'\n"+
		"[dashboard]\nlogin_required = true\ntrusted_proxies = ['127.0.0.1']\n"+
		"[[dashboard.users]]\nname = 'vera'\npassword_hash = '"+passwordhash.New(password)+"'\n"+
		"[[dashboard.users]]\nname = 'olga'\naccess = 'operator'\npassword_hash = '"+passwordhash.New(password)+"'\n")
	p := launch(t, place.with("serve", "--config", config, "--listen", ":0", "--log-level", "info", "--name", "server")...)
	base := served(p)
	eventually(t, "the page", func() bool {
		status, _ := fetch(t, http.MethodGet, base+"/readyz", "")
		return status == http.StatusOK
	})
	as := func(user string) []string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(user, password)
		return []string{"Authorization", r.Header.Get("Authorization")}
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for name, c := range map[string]struct {
		headers []string
		access  string
	}{
		"the viewers' token": {bearer(viewers), "viewer"}, "the operators' token": {bearer(operators), "operator"},
		"a viewer's password": {as("vera"), "viewer"}, "an operator's password": {as("olga"), "operator"},
	} {
		if status, text := fetch(t, http.MethodGet, base+"/api/session", "", c.headers...); status != http.StatusOK || !strings.Contains(text, `"access":"`+c.access+`","may_look":true`) {
			t.Errorf("%s: %d %s", name, status, text)
		}
		for _, path := range []string{"/v1/leaders", "/v1/audit", "/metrics", "/api/audit"} {
			if status, text := fetch(t, http.MethodGet, base+path, "", c.headers...); status != http.StatusOK {
				t.Errorf("%s: %s: %d %s", name, path, status, text)
			}
		}
	}
	const stepDown = "/v1/elections/metrics-aggregator/step-down"
	if status, text := fetch(t, http.MethodPost, base+stepDown, "", bearer(viewers)...); status != http.StatusForbidden || !strings.Contains(text, "the token is a viewer's, who may change nothing: use an operator's") {
		t.Errorf("a viewer steps down: %d %s", status, text)
	}
	eventually(t, "an operator steps down", func() bool {
		status, _ := fetch(t, http.MethodPost, base+stepDown, "", bearer(operators)...)
		return status == http.StatusOK
	})
	var audit result
	eventually(t, "the audit", func() bool {
		audit = invoke(t, place.with("audit", "-o", "json")...)
		return strings.Contains(audit.stdout, `"kind":"role","name":"metrics-aggregator","action":"step_down"`)
	})
	audit.want(t, console.ExitDone)
	if !strings.Contains(audit.stdout, `"requested_by":"HTTP from 127.0.0.1:`) || !strings.Contains(audit.stdout, `"result":"done"`) {
		t.Errorf("the audit is %s", audit.stdout)
	}
}

// TestServeRefusesUnusableLogins: combinations that would let no one in, or that have no
// effect, are refused before the database is opened.
func TestServeRefusesUnusableLogins(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "tenure.toml")
	if err := os.WriteFile(config, []byte("[dashboard.oidc]\nissuer = 'http://127.0.0.1:1'\nclient_id = 'tenure'\nviewer_groups = ['dev']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"[dashboard.oidc] needs --external-url": {"--config", config},
		"--operator needs --user-header":        {"--operator", "anna"},
		"--login-required needs a way to log":   {"--login-required"},
		"the token file":                        {"--viewer-token-file", filepath.Join(t.TempDir(), "none")},
	} {
		got := invoke(t, append([]string{"serve", "--dsn", "postgres://nobody@127.0.0.1:1/none", "--listen", ":0"}, args...)...)
		if got.code != console.ExitUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: exit code %d: %s", args, got.code, got.stderr)
		}
	}
}
