package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/passwordhash"
)

// fetch requests a path of a server and returns the status and the response.
func fetch(t *testing.T, method, url, body string, header ...string) (status int, answer string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

var servedAt = regexp.MustCompile(`msg="serving HTTP" .*address=([0-9.:]+)`)

// served is the address of a process's HTTP server.
func served(p *process) string {
	p.t.Helper()
	p.awaitLog("serving HTTP")
	return "http://" + servedAt.FindStringSubmatch(p.log())[1]
}

// The page, the API and the metrics of the cluster are served together. An
// alert on the nodes' samples is sent and resolved, and a client with the token
// may act.
func TestServeServesPageAPIAndMetrics(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	// The roles of serve have separate locks in each database.
	place := place{pgtest.Start(t, pgtest.Options{}), "public"}
	told := make(chan map[string]any, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message map[string]any
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		told <- message
	}))
	defer receiver.Close()
	folder := t.TempDir()
	const token = "0123456789abcdef0123456789abcdef"
	for name, text := range map[string]string{
		"token":  token + "\n",
		"secret": "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" + "\n",
		"tenure.toml": `
[[alerts]]
name = "no_billing_leader"
condition = 'sum(forge_leader_is_leader{role="billing"}) == 0'
severity = "critical"
notify = ["hook"]

[alerts.notifications.hook]
type = "webhook"
url = "` + receiver.URL + `"
secret_file = "` + filepath.Join(folder, "secret") + `"

[http]
external_url = "https://tenure.example.com"

[links.alert]
Runbook = "https://wiki.example.com/{alert}"

[links.role]
Logs = "https://logs.example.com/{role}"

[[dashboard.users]]
name = "anna"
access = "operator"
password_hash = "` + passwordhash.New("correct horse battery") + `"
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node := launch(t, place.with("serve", "--config", filepath.Join(folder, "tenure.toml"), "--token-file", filepath.Join(folder, "token"),
		"--listen", ":0", "--log-level", "info", "--alert-interval", "100ms", "--check-interval", "100ms")...)
	url := served(node)
	eventually(t, "the page", func() bool {
		status, page := fetch(t, http.MethodGet, url+"/", "")
		return status == http.StatusOK && strings.Contains(page, "<html")
	})
	hears := func(what string, ends bool) {
		t.Helper()
		limit := time.After(patience)
		for {
			select {
			case message := <-told:
				text, _ := json.Marshal(message)
				if strings.Contains(string(text), "no_billing_leader") && strings.Contains(string(text), "resolved") == ends {
					for _, link := range []string{`"https://tenure.example.com/#/alerts"`, `"links":[{"name":"Runbook","url":"https://wiki.example.com/no_billing_leader"},{"name":"Logs (billing)","url":"https://logs.example.com/billing"}]`} {
						if !strings.Contains(string(text), link) {
							t.Errorf("%s: no %s in %s", what, link, text)
						}
					}
					return
				}
			case <-limit:
				t.Fatalf("%s: nothing was sent", what)
			}
		}
	}
	hears("no node leads", false)
	leader := place.run(t, "--role", "billing", "--name", "api-1") // reports only what is in the database
	leader.await("acquired")
	hears("a node leads", true)

	_, figures := fetch(t, http.MethodGet, url+"/metrics/cluster", "")
	for _, want := range []string{`tenure_leader_is_leader{role="billing"} 1`, "tenure_aggregator_is_leader 1"} {
		if !strings.Contains(figures, want) {
			t.Errorf("/metrics/cluster has no %q:\n%s", want, figures)
		}
	}
	if status, leaders := fetch(t, http.MethodGet, url+"/v1/leaders", ""); status != http.StatusOK || !strings.Contains(leaders, "log-compactor") {
		t.Errorf("/v1/leaders: %d, %s", status, leaders)
	}
	eventually(t, "the alert on the page", func() bool {
		_, now := fetch(t, http.MethodGet, url+"/api/now", "")
		return strings.Contains(now, "no_billing_leader")
	})

	act := `{"action": "step_down", "name": "billing"}`
	if status, answer := fetch(t, http.MethodPost, url+"/api/actions", act, "Content-Type", "application/json"); status < 400 {
		t.Errorf("without the token: %d, %s", status, answer)
	}
	status, answer := fetch(t, http.MethodPost, url+"/api/actions", act, "Content-Type", "application/json", "Authorization", "Bearer "+token)
	if status != http.StatusOK {
		t.Errorf("with the token: %d, %s", status, answer)
	}
	leader.await("released")
	leader.await("acquired")
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:correct horse battery"))
	var session struct {
		User  string
		Token string `json:"csrf_token"`
	}
	if _, answer := fetch(t, http.MethodGet, url+"/api/session", "", "Authorization", basic); json.Unmarshal([]byte(answer), &session) != nil || session.User != "anna" {
		t.Errorf("anna's session: %s", answer)
	}
	status, answer = fetch(t, http.MethodPost, url+"/api/actions", act, "Content-Type", "application/json", "Authorization", basic, "X-CSRF-Token", session.Token)
	if status != http.StatusOK {
		t.Errorf("by anna: %d, %s", status, answer)
	}
	basic = "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:wrong horse battery"))
	if status, answer := fetch(t, http.MethodGet, url+"/api/now", "", "Authorization", basic); status != http.StatusUnauthorized {
		t.Errorf("with a wrong password: %d, %s", status, answer)
	}
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d:\n%s", code, node.log())
	}
}

// A node that serves writes samples of its metrics.
func TestServeWritesSamples(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--listen", ":0").await("acquired")
	conn := place.server.Conn(t)
	eventually(t, "a sample", func() bool {
		var some bool
		err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM "+place.schema+".tenure_samples)").Scan(&some)
		return err == nil && some
	})
}

// Each error is one clear line with exit code 2, before anything runs.
func TestServeRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	broken := filepath.Join(t.TempDir(), "tenure.toml")
	if err := os.WriteFile(broken, []byte("[[alerts]]\nname = 'a'\ncondition = 'sum(('\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"must be an address or a network": {"--trusted-proxy", "proxy", "--user-header", "X-User"},
		"needs --trusted-proxy":           {"--user-header", "X-User"},
		"alert-interval":                  {"--alert-interval", "0s"},
		"--external-url is":               {"--external-url", "tenure.example.com"},
		"it must be at least 1h":          {"--retention", "1m"},
		"--listen is empty":               {"--listen", ""},
		"needs a way to log in":           {"--login-required"},
		"needs the dashboard":             {"--login-required", "--user-header", "X-User", "--trusted-proxy", "10.0.0.1", "--dashboard=false"},
		"the token file":                  {"--token-file", broken + ".token"},
		"3:":                              {"--config", broken},
	} {
		got := invoke(t, place.with(append([]string{"serve", "--listen", ":0"}, args...)...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: %q; want %q", args, got.stderr, want)
		}
	}
	if got := invoke(t, "serve", "--dsn", "sqlite:"+filepath.Join(t.TempDir(), "x")).want(t, console.ExitUsage); !strings.Contains(got.stderr, "needs PostgreSQL") {
		t.Errorf("on SQLite: %q", got.stderr)
	}
	if got := invoke(t, place.with("status")...).want(t, console.ExitUsage); !strings.Contains(got.stderr, "there are no tables") {
		t.Errorf("a node has joined: %q", got.stderr)
	}
}
