package signon

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/exactly-one/tenure/internal/program/config"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/dashboard"
)

const clientSecret = "the-secret-of-the-client"

// builtProvider builds the provider, once. It is in the module of the laboratory.
var builtProvider = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "oidcprovider-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "oidcprovider")
	build := exec.Command("go", "build", "-ldflags=-w", "-o", program, ".")
	build.Dir = "../../../lab/oidcprovider"
	build.Env = append(os.Environ(), "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(text), Err: err}
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := builtProvider(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// identityProvider is a running provider.
type identityProvider struct {
	issuer string
	move   func(user string, groups ...string) // changes the groups of a user
	stop   func()
}

// startProvider starts a provider with a client until the test ends.
func startProvider(t *testing.T, secret, back string) identityProvider {
	t.Helper()
	program, err := builtProvider()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, "tenure", secret, back)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = input.Close() // it ends then
		_ = command.Wait()
	})
	t.Cleanup(stop)
	answers := bufio.NewReader(output)
	line, err := answers.ReadString('\n')
	if err != nil {
		t.Fatalf("the provider did not start: %v", err)
	}
	move := func(user string, groups ...string) {
		t.Helper()
		change := user + " " + strings.Join(groups, " ") + "\n"
		if _, err := io.WriteString(input, change); err != nil {
			t.Fatal(err)
		}
		if done, err := answers.ReadString('\n'); err != nil || done != change {
			t.Fatalf("the groups of %s: %q, %v", user, done, err)
		}
	}
	return identityProvider{strings.TrimSpace(line), move, stop}
}

// site is a dashboard whose users log in at a provider.
type site struct {
	url      string
	provider *Provider
	identity identityProvider
}

// newSite serves a dashboard, whose database does not answer, and starts its provider.
func newSite(t *testing.T, secret string, change func(*Config)) *site {
	t.Helper()
	var handler atomic.Pointer[dashboard.Dashboard]
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().ServeHTTP(w, r) }))
	s := &site{url: web.URL}
	c := Config{
		SignOn: config.SignOn{
			ClientID: "tenure", OperatorGroups: []string{"sre"}, OperatorEmails: []string{"olga@example.com"}, ViewerEmails: []string{"*@example.com"},
		},
		RedirectURL: web.URL + "/login/callback",
	}
	if secret != "" {
		c.SecretFile = filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(c.SecretFile, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.identity = startProvider(t, secret, c.RedirectURL)
	c.Issuer = s.identity.issuer
	change(&c)
	var err error
	if s.provider, err = New(c); err != nil {
		t.Fatal(err)
	}
	backend, err := postgres.New("postgres://nobody@127.0.0.1:1/none?connect_timeout=1", postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := dashboard.New(dashboard.Config{
		Backend: backend, Authentication: dashboard.Authentication{SignOn: s.provider.SignOn(), Required: true},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	handler.Store(page)
	t.Cleanup(func() {
		web.Close()
		page.Close()
		s.provider.Close()
		backend.Close()
	})
	return s
}

// browser is a browser that keeps cookies and follows redirects.
type browser struct {
	*testing.T
	http.Client
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{T: t, Client: http.Client{Jar: jar, Transport: &http.Transport{}}}
	t.Cleanup(b.CloseIdleConnections)
	return b
}

func (b *browser) do(method, address string, form url.Values) (status int, at *url.URL, body string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := b.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, response.Request.URL, string(text)
}

var requestID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// logIn opens an address that leads to the provider's form, and fills it in.
func (b *browser) logIn(address, user string) (status int, at *url.URL, body string) {
	b.Helper()
	_, at, body = b.do(http.MethodGet, address, nil)
	found := requestID.FindStringSubmatch(body)
	if found == nil {
		b.Fatalf("%s is not the provider's form: %s", at, body)
	}
	return b.do(http.MethodPost, at.Scheme+"://"+at.Host+"/login/username", url.Values{"id": {found[1]}, "username": {user}, "password": {user}})
}

// TestUsersOfTheProviderHaveTheirAccess: by the whole flow through the dashboard and a real
// provider, with a secret and without, users have the access of their groups and verified
// addresses; who has none sees nothing.
func TestUsersOfTheProviderHaveTheirAccess(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]string{"with a secret": clientSecret, "public": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, secret, func(*Config) {})
			for user, want := range map[string]struct {
				status  int
				session string
			}{
				"olga":     {http.StatusOK, `"user":"olga@example.com","access":"operator","may_look":true,"may_act":true`},
				"vera":     {http.StatusOK, `"user":"vera@example.com","access":"viewer","may_look":true,"may_act":false`},
				"stranger": {http.StatusForbidden, `"user":"","access":"","may_look":false`},
				"mallory":  {http.StatusForbidden, `"user":"","access":"","may_look":false`},
			} {
				b := newBrowser(t)
				status, at, body := b.logIn(s.url+"/login", user)
				if status != want.status || status == http.StatusOK && at.String() != s.url+"/" {
					t.Errorf("%s: %d at %s: %.300s", user, status, at, body)
				}
				if _, _, session := b.do(http.MethodGet, s.url+"/api/session", nil); !strings.Contains(session, want.session) {
					t.Errorf("%s: the session is %s", user, session)
				}
			}
		})
	}
}

// TestCodesOfOtherLoginsAreRefused: a code that the provider gave to one login is worth
// nothing in another one, nor without the verifier or the nonce, nor a second time.
func TestCodesOfOtherLoginsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, clientSecret, func(*Config) {})
	flow := dashboard.Flow{State: strings.Repeat("s", 43), Nonce: strings.Repeat("n", 43), Verifier: strings.Repeat("v", 43)}
	// code returns the query with which the provider sends a browser back.
	code := func() url.Values {
		t.Helper()
		address, err := s.provider.begin(t.Context(), flow)
		if err != nil {
			t.Fatal(err)
		}
		_, at, _ := newBrowser(t).logIn(address, "olga") // the dashboard refuses: the browser has no cookie
		if query := at.Query(); query.Get("code") != "" && query.Get("state") == flow.State {
			return query
		}
		t.Fatalf("the provider leads to %s", at)
		return nil
	}
	finish := func(query url.Values, flow dashboard.Flow) string {
		user, err := s.provider.finish(t.Context(), query, flow)
		if err != nil {
			return err.Error()
		}
		return user.Name + " " + user.Access.String()
	}
	other := strings.Repeat("x", 43)
	for want, change := range map[string]func(*dashboard.Flow){
		"does not accept the code":  func(f *dashboard.Flow) { f.Verifier = other },
		"nonce of another login":    func(f *dashboard.Flow) { f.Nonce = other },
		"state of another login":    func(f *dashboard.Flow) { f.State = other },
		"olga@example.com operator": func(*dashboard.Flow) {},
	} {
		changed := flow
		change(&changed)
		if got := finish(code(), changed); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	query := code()
	finish(query, flow)
	if got := finish(query, flow); !strings.Contains(got, "does not accept the code") {
		t.Errorf("a second time: %q", got)
	}
	for want, query := range map[string]url.Values{
		`refused the login: "access_denied"`: {"state": {flow.State}, "error": {"access_denied"}},
		"another provider's":                 {"state": {flow.State}, "code": {"x"}, "iss": {"https://evil.example"}},
	} {
		if got := finish(query, flow); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWrongSecretFailsTheLogin: with another secret than the provider knows, no login
// succeeds, and the browser does not learn why.
func TestWrongSecretFailsTheLogin(t *testing.T) {
	t.Parallel()
	s := newSite(t, clientSecret, func(c *Config) {
		if err := os.WriteFile(c.SecretFile, []byte("wrong"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if status, _, body := newBrowser(t).logIn(s.url+"/login", "olga"); status != http.StatusBadGateway || strings.Contains(body, "client") {
		t.Errorf("%d: %s", status, body)
	}
}

// TestSilentProviderIsBounded: a provider that is not there, never answers, or answers
// nonsense ends the beginning of a login with a clear error; one that comes later is used.
func TestSilentProviderIsBounded(t *testing.T) {
	t.Parallel()
	var mode atomic.Value
	mode.Store("silent")
	var issuer string
	end := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch mode.Load() {
		case "silent":
			select {
			case <-r.Context().Done():
			case <-end:
			}
		case "switch": // to another protocol, of which it sends nothing
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn) // until the client closes it
			_ = conn.Close()
		case "nonsense":
			_, _ = io.WriteString(w, strings.Repeat("nonsense\n", 1<<18))
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"issuer":"`+issuer+`","authorization_endpoint":"`+issuer+`/authorize","token_endpoint":"`+issuer+`/token","jwks_uri":"`+issuer+`/keys"}`)
		}
	}))
	defer web.Close()
	defer close(end)
	issuer = web.URL
	p, err := New(Config{SignOn: config.SignOn{Issuer: issuer, ClientID: "tenure", ViewerEmails: []string{"*@example.com"}}, RedirectURL: "https://dash.example/login/callback"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.client.Timeout != requestTimeout {
		t.Errorf("a request may take %v", p.client.Timeout)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as if the time were over
	for _, c := range []struct {
		mode string
		ctx  context.Context
	}{{"silent", ctx}, {"nonsense", t.Context()}, {"switch", t.Context()}} {
		mode.Store(c.mode)
		if _, err := p.begin(c.ctx, dashboard.Flow{}); err == nil || !strings.Contains(err.Error(), "OpenID Connect provider "+issuer+": ") || len(err.Error()) > 500 {
			t.Errorf("%s: %v", c.mode, err)
		}
	}
	mode.Store("usable")
	if address, err := p.begin(t.Context(), dashboard.Flow{State: "s"}); err != nil || !strings.HasPrefix(address, issuer+"/authorize?") || !strings.Contains(address, "code_challenge_method=S256") {
		t.Errorf("later: %s, %v", address, err)
	}
	if !p.SignOn().Secure {
		t.Error("cookies of a dashboard with TLS are not bound to TLS")
	}
}
