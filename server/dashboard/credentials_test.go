package dashboard

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// Credentials for a system in front of the dashboard are not taken for wrong
// credentials here.
func TestCredentialsOfAnotherSystemAreIgnored(t *testing.T) {
	t.Parallel()
	const basic, bearer, other = "Basic YmVydDp3cm9uZw==", "Bearer of-something-else", "Negotiate xyz"
	all := authentication(t)
	for name, c := range map[string]struct {
		authentication Authentication
		header         string
		refused        bool
	}{
		"passwords of a proxy, nothing here":  {Authentication{}, basic, false},
		"tokens of a service, nothing here":   {Authentication{}, bearer, false},
		"passwords of a proxy, tokens here":   {Authentication{Token: all.Token}, basic, false},
		"tokens of a service, passwords here": {Authentication{Password: all.Password}, bearer, false},
		"neither":                             {all, other, false},
		"a wrong password":                    {all, basic, true},
		"a wrong token":                       {all, bearer, true},
		"a scheme in capitals":                {all, strings.ToUpper(bearer[:6]) + bearer[6:], true},
	} {
		g := newGuard(Config{Authentication: c.authentication})
		g.log = discarded()
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", c.header)
		if v := g.identify(r); v.refused != c.refused || v.user != "" {
			t.Errorf("%s: %+v", name, v)
		}
		if tried := !g.attempts.Clean(); tried != c.refused {
			t.Errorf("%s: wrong credentials are counted: %v", name, tried)
		}
	}
	// The session counts beside what the proxy was sent.
	g := newGuard(Config{Authentication: Authentication{Token: all.Token}})
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Authorization", basic)
	r.AddCookie(&http.Cookie{Name: cookieName, Value: g.sessions.begin(session{token: annasToken})})
	if v := g.identify(r); v.user != "anna" || v.way != byCookie {
		t.Errorf("a session behind a proxy with passwords: %+v", v)
	}
}

// Over TLS the cookie has a name that no other host can set. A cookie that
// another host did set logs no user in or out.
func TestCookieNameDependsOnTLS(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"": "__Host-tenure_session", "/ops": "__Secure-tenure_session"} {
		g := newGuard(Config{BasePath: base, Authentication: authentication(t)})
		r := httptest.NewRequest(http.MethodGet, "https://x/", http.NoBody)
		r.TLS = &tls.ConnectionState{}
		c := g.cookie(r, g.sessions.begin(session{token: annasToken}), time.Hour)
		if c.Name != want || c.Path != base+"/" || c.Domain != "" || !c.Secure {
			t.Errorf("below %q: %v", base, c)
		}
		mallory := g.sessions.begin(session{token: annasToken})
		for _, tossed := range []string{"unknown", mallory} {
			r := httptest.NewRequest(http.MethodGet, "https://x/", http.NoBody)
			r.Header.Set("Cookie", cookieName+"="+tossed+"; "+c.Name+"="+c.Value)
			if v := g.identify(r); v.user != "anna" || v.session != c.Value {
				t.Errorf("beside %q: %+v", tossed, v)
			}
		}
	}
	g := newGuard(Config{Authentication: authentication(t)})
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Cookie", cookieName+"=unknown; "+cookieName+"="+g.sessions.begin(session{token: annasToken}))
	if v := g.identify(r); v.user != "anna" {
		t.Errorf("another cookie of the same name hides the session: %+v", v)
	}
}

// A proxy that names no user is trusted for the address of a request, and for
// whether it came over TLS.
func TestProxyWithoutUsersIsTrustedForAddress(t *testing.T) {
	t.Parallel()
	who := Authentication{Token: authentication(t).Token, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	if err := who.validate(); err != nil {
		t.Fatal(err)
	}
	g := newGuard(Config{Authentication: who})
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = "192.0.2.9:1"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	r.Header.Set("X-Forwarded-Proto", "https")
	r.Header.Set("X-Forwarded-User", "anna")
	if v := g.identify(r); v.way != nobody || !g.secure(r) || g.addressOf(r) != "203.0.113.9" {
		t.Errorf("%+v, secure %v, from %s", v, g.secure(r), g.addressOf(r))
	}
}

// Requests in forms that browsers do not send get no more than a browser's
// request does, and hold nothing open.
func TestOddRequestsGainNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)})
	type ask struct {
		method, path string
		headers      []string
		want         int
	}
	for name, c := range map[string]ask{
		"a part of a file":         {http.MethodGet, "/assets/app.js", []string{"Range", "bytes=0-9"}, 206},
		"parts without end":        {http.MethodGet, "/assets/app.js", []string{"Range", "bytes=" + strings.Repeat("0-,", 500) + "0-"}, 200},
		"a part that is not there": {http.MethodGet, "/assets/app.js", []string{"Range", "bytes=99999999-"}, 416},
		"weak tags from a proxy":   {http.MethodGet, "/assets/app.js", []string{"If-None-Match", `"x", *`}, 304},
		"a web socket":             {http.MethodGet, "/api/now", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "x"}, 200},
		"a scheme in other case":   {http.MethodGet, "/api/now", []string{"Authorization", "bEARER " + annasToken}, 200},
		"another's address":        {http.MethodGet, "/api/now", []string{"X-Forwarded-For", "127.0.0.1", "X-Forwarded-Host", "evil.example", "X-Original-URL", "/api/actions", "X-HTTP-Method-Override", "POST"}, 200},
		"credentials in a query":   {http.MethodPost, "/api/actions?token=" + annasToken, nil, 401},
	} {
		response, text := w.request(c.method, c.path, "", c.headers...)
		if response.StatusCode != c.want {
			t.Errorf("%s: %s %s; want %d", name, response.Status, text, c.want)
		}
		if policy := response.Header.Get("Content-Security-Policy"); policy == "" || strings.Contains(text, "evil") || strings.Contains(text, annasToken) {
			t.Errorf("%s: %v %s", name, response.Header, text)
		}
	}
	// Its connection stays open for more.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, w.url+"/api/stream", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	w.await("no stream is open", func() bool { return w.board.streams.Open() == 0 })
}
