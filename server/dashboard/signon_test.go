package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// signOnGuard returns a guard with a site that knows its users by their codes, and a
// handler of its two paths.
func signOnGuard(t *testing.T, secure bool) (*guard, http.Handler) {
	t.Helper()
	on := &SignOn{
		Secure: secure,
		Begin: func(_ context.Context, flow Flow) (string, error) {
			if len(flow.State) != 43 || len(flow.Nonce) != 43 || len(flow.Verifier) != 43 || flow.State == flow.Nonce || flow.Nonce == flow.Verifier {
				t.Errorf("the flow is %+v", flow)
			}
			return "https://id.example/authorize?" + url.Values{"state": {flow.State}}.Encode(), nil
		},
		Finish: func(_ context.Context, query url.Values, flow Flow) (User, error) {
			if query.Get("state") != flow.State {
				t.Errorf("Finish is called with a wrong state")
			}
			switch query.Get("code") {
			case "olga":
				return User{"olga@example.com", Operator}, nil
			case "vera":
				return User{Name: "vera@example.com"}, nil
			case "nameless":
				return User{}, nil
			case "stranger":
				return User{Name: "stranger@example.com"}, ErrNoAccess
			default:
				return User{}, errors.New("a secret reason")
			}
		},
	}
	g := newGuard(Config{BasePath: "/ops", Logger: slog.New(slog.DiscardHandler), Authentication: Authentication{SignOn: on, Required: true}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", g.beginSignOn)
	mux.HandleFunc("GET /login/callback", g.finishSignOn)
	return g, mux
}

// visit is what a browser with cookies gets.
func visit(handler http.Handler, path string, cookies ...*http.Cookie) (reply, string) {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	response := reply{StatusCode: w.Code, Status: http.StatusText(w.Code), Header: w.Header()}
	for _, line := range w.Header().Values("Set-Cookie") {
		if cookie, err := http.ParseSetCookie(line); err == nil {
			response.Cookies = append(response.Cookies, cookie)
		}
	}
	return response, w.Body.String()
}

// begun begins a login and returns its cookie and the state at the site.
func begun(t *testing.T, handler http.Handler) (cookie *http.Cookie, state string) {
	t.Helper()
	response, text := visit(handler, "/login")
	address, err := url.Parse(response.Header.Get("Location"))
	if err != nil || response.StatusCode != http.StatusSeeOther || len(response.Cookies) != 1 {
		t.Fatalf("begin: %s %s %v, cookies %v", response.Status, text, err, response.Cookies)
	}
	return response.Cookies[0], address.Query().Get("state")
}

// TestSignOnOpensASession: after the login at the other site, the browser has a session
// with the user's access, whose cookie is hidden from scripts and other sites, and shows
// the page, whatever else the query asks for.
func TestSignOnOpensASession(t *testing.T) {
	t.Parallel()
	for code, access := range map[string]Access{"olga": Operator, "vera": Viewer} {
		g, handler := signOnGuard(t, true)
		cookie, state := begun(t, handler)
		if cookie.Name != "__Secure-tenure_sign_on" || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 600 || cookie.Path != "/ops/" {
			t.Errorf("the cookie of the login: %v", cookie)
		}
		response, _ := visit(handler, "/login/callback?next=//evil.example&redirect_uri=https://evil.example&code="+code+"&state="+state, cookie)
		if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/ops/" {
			t.Errorf("%s: %s to %q", code, response.Status, to)
		}
		var opened *http.Cookie
		for _, c := range response.Cookies {
			switch c.Name {
			case "__Secure-tenure_session":
				opened = c
			case cookie.Name:
				if c.MaxAge >= 0 {
					t.Errorf("the cookie of the login stays: %v", c)
				}
			}
		}
		if opened == nil || !opened.HttpOnly || !opened.Secure || opened.SameSite != http.SameSiteStrictMode {
			t.Fatalf("%s: the session's cookie is %v", code, opened)
		}
		r := httptest.NewRequest(http.MethodGet, "/api/now", http.NoBody)
		r.AddCookie(opened)
		if v := g.identify(r); v.user != code+"@example.com" || v.access != access || v.way != byCookie {
			t.Errorf("%s: %+v", code, v)
		}
		g.sessions.now = func() time.Time { return time.Now().Add(12*time.Hour - time.Minute) }
		if v := g.identify(r); v.way != byCookie {
			t.Errorf("%s before 12 hours have passed: %+v, want a login", code, v)
		}
		g.sessions.now = func() time.Time { return time.Now().Add(12 * time.Hour) }
		if v := g.identify(r); v.way != nobody {
			t.Errorf("%s after 12 hours: %+v, want no login", code, v)
		}
	}
}

// TestForgedSignOnsAreRefused: a login that another browser began, or that took too long, or
// that the site refuses, opens no session and reveals no reason.
func TestForgedSignOnsAreRefused(t *testing.T) {
	t.Parallel()
	g, handler := signOnGuard(t, true)
	cookie, state := begun(t, handler)
	_, others := begun(t, handler)
	_, elsewhere := signOnGuard(t, true)
	foreign, _ := begun(t, elsewhere)
	plain := *cookie
	plain.Name = flowCookie
	for name, c := range map[string]struct {
		query   string
		cookies []*http.Cookie
		after   time.Duration
		want    int
	}{
		"no cookie":                {"code=olga&state=" + state, nil, 0, 400},
		"no state":                 {"code=olga", []*http.Cookie{cookie}, 0, 400},
		"an empty state":           {"code=olga&state=", []*http.Cookie{cookie}, 0, 400},
		"the state of another":     {"code=olga&state=" + others, []*http.Cookie{cookie}, 0, 400},
		"a cookie of another":      {"code=olga&state=" + state, []*http.Cookie{foreign}, 0, 400},
		"a cookie over no TLS":     {"code=olga&state=" + state, []*http.Cookie{&plain}, 0, 400},
		"too late":                 {"code=olga&state=" + state, []*http.Cookie{cookie}, flowLife, 400},
		"a user without access":    {"code=stranger&state=" + state, []*http.Cookie{cookie}, 0, 403},
		"a user without a name":    {"code=nameless&state=" + state, []*http.Cookie{cookie}, 0, 403},
		"refused by the site":      {"error=access_denied&state=" + state, []*http.Cookie{cookie}, 0, 502},
		"the cookie among foreign": {"code=vera&state=" + state, []*http.Cookie{foreign, cookie}, 0, 303},
	} {
		g.sessions.now = func() time.Time { return time.Now().Add(c.after) }
		response, text := visit(handler, "/login/callback?"+c.query, c.cookies...)
		if response.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", name, response.Status, c.want)
		}
		for _, set := range response.Cookies {
			if strings.HasSuffix(set.Name, cookieName) && c.want != 303 {
				t.Errorf("%s opens a session", name)
			}
		}
		if strings.Contains(text, "secret reason") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if len(g.sessions.open) != 1 {
		t.Errorf("%d sessions are open", len(g.sessions.open))
	}
}

// TestSignOnThatCannotBeginSaysSo: while the site cannot be used, and without one, the
// browser goes nowhere; a page that needs a login shows that there is a site.
func TestSignOnThatCannotBeginSaysSo(t *testing.T) {
	t.Parallel()
	g, handler := signOnGuard(t, false)
	g.authentication.SignOn.Begin = func(context.Context, Flow) (string, error) { return "", errors.New("down") }
	if response, _ := visit(handler, "/login"); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Location") != "" || len(response.Cookies) != 0 {
		t.Errorf("%s to %q", response.Status, response.Header.Get("Location"))
	}
	d := &Dashboard{guard: g}
	w := httptest.NewRecorder()
	d.session(w, httptest.NewRequest(http.MethodGet, "/api/session", http.NoBody))
	if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, `"sign_on":true`) || !strings.Contains(text, `"may_look":false`) {
		t.Errorf("the session: %d %s", w.Code, text)
	}
	g.authentication.SignOn = nil
	for _, path := range []string{"/login", "/login/callback?code=olga&state=x"} {
		if response, _ := visit(handler, path); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s without a site: %s", path, response.Status)
		}
	}
}
