package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/httpguard"
	"github.com/exactly-one/tenure/internal/pgtest"
)

const (
	annasToken    = "annas-token-is-long-enough"
	bertsPassword = "berts-password-is-long"
	violasToken   = "violas-token-is-long-enough"
	vitosPassword = "vitos-password-is-long"
)

func authentication(t *testing.T) Authentication {
	t.Helper()
	token, err := Tokens(map[string]string{"anna": annasToken}, map[string]string{"viola": violasToken})
	if err != nil {
		t.Fatal(err)
	}
	password, err := Passwords(map[string]string{"bert": bertsPassword}, map[string]string{"vito": vitosPassword})
	if err != nil {
		t.Fatal(err)
	}
	return Authentication{
		Token: token, Password: password, UserHeader: "X-Forwarded-User", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}
}

const stepDownOfNobody = `{"action":"step_down","name":"nobody's"}`

// logIn opens a session and returns its cookie and the token that its page sends with
// actions.
func (w *world) logIn(token string) (cookie, forgery string) {
	w.Helper()
	response, text := w.request(http.MethodPost, "/api/login", object(map[string]any{"token": token}))
	if response.StatusCode != http.StatusOK || len(response.Cookies) != 1 {
		w.Fatalf("log in: %s %s", response.Status, text)
	}
	cookie = response.Cookies[0].Name + "=" + response.Cookies[0].Value
	return cookie, get[sessionRecord](w, "/api/session", "Cookie", cookie).Token
}

// Without authentication, everybody may view and no visitor may act. With ReadOnly,
// no user may act even with authentication.
func TestReadOnlyPreventsActions(t *testing.T) {
	t.Parallel()
	bearer := []string{"Authorization", "Bearer " + annasToken}
	for name, config := range map[string]Config{"nothing": {}, "read only": {ReadOnly: true, Authentication: authentication(t)}} {
		w := newWorld(t, config)
		get[nowRecord](w, "/api/now")
		if response, text := w.request(http.MethodPost, "/api/actions", stepDownOfNobody, bearer...); response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: acting: %s %s", name, response.Status, text)
		}
		if s := get[sessionRecord](w, "/api/session"); s.MayAct || !s.ReadOnly || !s.MayLook {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The table contains requests that must be refused, or must not be; the page on
// security lists them.
func TestAttackRequestsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)})
	cookie, forgery := w.logIn(annasToken)
	basic := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	basic.SetBasicAuth("bert", bertsPassword)
	bert := basic.Header.Get("Authorization")
	bertsForgery := get[sessionRecord](w, "/api/session", "Authorization", bert).Token
	// A request that is admitted finds that no node leads the role: 409.
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"no credentials":                 {nil, 401},
		"a wrong token":                  {[]string{"Authorization", "Bearer " + annasToken + "x"}, 401},
		"an empty token":                 {[]string{"Authorization", "Bearer "}, 401},
		"a token under another scheme":   {[]string{"Authorization", "Token " + annasToken}, 401},
		"the token":                      {[]string{"Authorization", "Bearer " + annasToken}, 409},
		"a wrong password":               {[]string{"Authorization", "Basic YmVydDp3cm9uZw=="}, 401},
		"the password":                   {[]string{"Authorization", bert, "X-CSRF-Token", bertsForgery}, 409},
		"the password, by another page":  {[]string{"Authorization", bert}, 403},
		"another's forgery token":        {[]string{"Authorization", bert, "X-CSRF-Token", forgery}, 403},
		"the cookie":                     {[]string{"Cookie", cookie, "X-CSRF-Token", forgery}, 409},
		"the cookie alone":               {[]string{"Cookie", cookie}, 403},
		"an invented cookie":             {[]string{"Cookie", cookieName + "=AAAAAAAAAAAAAAAAAAAAAAAAAA", "X-CSRF-Token", forgery}, 401},
		"a user header from nowhere":     {[]string{"X-Forwarded-User", "anna"}, 401},
		"the cookie from another site":   {[]string{"Cookie", cookie, "X-CSRF-Token", forgery, "Sec-Fetch-Site", "cross-site"}, 403},
		"the cookie from a sister site":  {[]string{"Cookie", cookie, "X-CSRF-Token", forgery, "Sec-Fetch-Site", "same-site"}, 403},
		"the cookie from another origin": {[]string{"Cookie", cookie, "X-CSRF-Token", forgery, "Origin", "https://evil.example"}, 403},
		"the cookie from no origin":      {[]string{"Cookie", cookie, "X-CSRF-Token", forgery, "Origin", "null"}, 403},
		"the token from another site":    {[]string{"Authorization", "Bearer " + annasToken, "Sec-Fetch-Site", "cross-site"}, 403},
		"another name of this machine":   {[]string{"Authorization", "Bearer " + annasToken, "Host", "rebound.example"}, 421},
		"a form's body":                  {[]string{"Authorization", "Bearer " + annasToken, "Content-Type", "text/plain"}, 415},
	} {
		response, text := w.request(http.MethodPost, "/api/actions", stepDownOfNobody, c.headers...)
		if response.StatusCode != c.want {
			t.Errorf("%s: %s %s; want %d", name, response.Status, text, c.want)
		}
		w.board.guard.attempts.Reset()
	}
	for name, body := range map[string]string{
		"no action": `{}`, "an unknown action": `{"action":"format"}`, "an unknown field": `{"action":"step_down","role":"x"}`, "no object": `[]`, "two objects": `{}{}`,
		"half an object": `{"action":`, "a node that is none": `{"action":"drain","node":"x"}`, "a name with a zero": `{"action":"step_down","name":"a\u0000b"}`,
	} {
		response, text := w.request(http.MethodPost, "/api/actions", body, "Authorization", "Bearer "+annasToken)
		if response.StatusCode/100 != 4 {
			t.Errorf("%s: %s %s", name, response.Status, text)
		}
	}
	response, text := w.request(http.MethodPost, "/api/actions", `{"name":"`+strings.Repeat("x", maxBody)+`"}`, "Authorization", "Bearer "+annasToken)
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge body: %s %s", response.Status, text)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, "TRACE"} {
		if response, _ := w.request(method, "/api/actions", ""); response.StatusCode/100 != 4 {
			t.Errorf("%s of actions: %s", method, response.Status)
		}
	}
}

// Paths that try to leave the allowed folders find nothing and redirect nowhere
// else. Every response carries the protective headers.
func TestUnknownPathsFindNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{BasePath: "/ops/tenure"})
	for path, want := range map[string]int{
		"/ops/tenure/": 200, "/ops/tenure": 308, "/ops/tenure/assets/app.js": 200, "/": 404, "/ops/": 404, "/ops/tenurex/": 404, "/ops/tenure/assets/": 404,
		"/ops/tenure/assets/index.html": 404, "/ops/tenure/assets/../../dashboard.go": 0, "/ops/tenure/assets/%2e%2e/%2e%2e/dashboard.go": 0,
		"/ops/tenure/assets/..%2f..%2fdashboard.go": 404, "/ops/tenure/assets/app.js%00.html": 404, "/ops/tenure//evil.example/": 0, "//evil.example/ops/tenure": 0,
		"/ops/tenure/%5c%5cevil.example": 404, "/ops/tenure/api/role?name=..%2f..%2fetc%2fpasswd": 404, "/ops/tenure/api/roles?offset=-1&limit=99999999999999999999": 200,
		"/ops/tenure/api/timeline?role=%00&from=x&to=-1": 404, "/ops/tenure/api/role?name=a%0d%0aSet-Cookie:%20x=1": 404,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//" + strings.TrimPrefix(w.url, "http://") + path // unchanged
		response, text := w.send(r)
		to := response.Header.Get("Location")
		switch {
		case want != 0 && response.StatusCode != want, want == 0 && response.StatusCode < 300:
			t.Errorf("%s: %s", path, response.Status)
		case to != "" && (!strings.HasPrefix(to, "/ops/tenure") || strings.HasPrefix(to, "//")):
			t.Errorf("%s leads to %s", path, to)
		case strings.Contains(text, "package dashboard"), response.Header.Get("Set-Cookie") != "":
			t.Errorf("%s: %s %v", path, text, response.Header)
		case response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotFound:
			if h := response.Header; h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
}

// The cookie is hidden from scripts and other sites, guesses are limited, and a
// login session ends with its token.
func TestLoginLimitsGuesses(t *testing.T) {
	t.Parallel()
	var valid atomic.Bool
	valid.Store(true)
	known := authentication(t).Token
	w := newWorld(t, Config{BasePath: "/ops", Authentication: Authentication{Required: true, Token: func(token string) (User, bool) {
		user, ok := known(token)
		return user, ok && valid.Load()
	}}})
	w.url += "/ops"
	for _, path := range []string{"/api/now", "/api/roles", "/api/stream", "/api/timeline?role=x"} {
		if response, _ := w.request(http.MethodGet, path, ""); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token: %s", path, response.Status)
		}
	}
	if s := get[sessionRecord](w, "/api/session"); s.MayLook || s.MayAct || s.LogIn != "token" {
		t.Errorf("%+v", s)
	}
	response, _ := w.request(http.MethodPost, "/api/login", object(map[string]any{"token": annasToken}), "Sec-Fetch-Site", "cross-site")
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("logging in from another site: %s", response.Status)
	}
	response, _ = w.request(http.MethodPost, "/api/login", object(map[string]any{"token": annasToken}))
	cookie := response.Cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/ops/" || cookie.Secure || cookie.Domain != "" {
		t.Errorf("the cookie: %v", cookie)
	}
	key := cookie.Name + "=" + cookie.Value
	if s := get[sessionRecord](w, "/api/session", "Cookie", key); !s.MayLook || !s.MayAct || s.User != "anna" || !s.CanLogOut {
		t.Errorf("%+v", s)
	}
	get[nowRecord](w, "/api/now", "Cookie", key)
	valid.Store(false)
	if response, _ := w.request(http.MethodGet, "/api/now", "", "Cookie", key); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session of a token that is no longer known: %s", response.Status)
	}
	valid.Store(true)
	if response, _ = w.request(http.MethodPost, "/api/logout", "{}", "Cookie", key); response.StatusCode != http.StatusOK || response.Cookies[0].MaxAge >= 0 {
		t.Errorf("logging out: %s %v", response.Status, response.Cookies)
	}
	if response, _ := w.request(http.MethodGet, "/api/now", "", "Cookie", key); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session that was ended: %s", response.Status)
	}

	now := time.Now()
	w.board.guard.attempts.Now = func() time.Time { return now }
	for i := range httpguard.MaxAttempts {
		if response, _ := w.request(http.MethodPost, "/api/login", `{"token":"wrong"}`); response.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: %s", i, response.Status)
		}
	}
	response, _ = w.request(http.MethodPost, "/api/login", object(map[string]any{"token": annasToken}))
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") == "" {
		t.Errorf("a further guess: %s", response.Status)
	}
	if response, _ := w.request(http.MethodGet, "/api/now", "", "Authorization", "Bearer "+annasToken); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a guess by header: %s", response.Status)
	}
	now = now.Add(httpguard.AttemptsPeriod)
	w.logIn(annasToken)
	for range httpguard.MaxAttempts {
		w.request(http.MethodGet, "/api/now", "", "Authorization", "Bearer wrong")
	}
	if response, _ := w.request(http.MethodGet, "/api/now", "", "Authorization", "Bearer "+annasToken); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after guesses by header: %s", response.Status)
	}
}

// Over TLS the cookie is marked secure, also behind a proxy that reports TLS.
func TestCookieIsSecureOverTLS(t *testing.T) {
	t.Parallel()
	g := newGuard(Config{Authentication: authentication(t)})
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   bool
	}{
		"plain":          {func(*http.Request) {}, false},
		"TLS":            {func(r *http.Request) { r.TLS = httptest.NewRequest(http.MethodGet, "https://x/", http.NoBody).TLS }, true},
		"proxied":        {func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }, true},
		"by its page":    {func(r *http.Request) { r.Header.Set("Origin", "https://x") }, true},
		"another page":   {func(r *http.Request) { r.Header.Set("Origin", "http://x") }, false},
		"said by anyone": {func(r *http.Request) { r.RemoteAddr = "198.51.100.1:1"; r.Header.Set("X-Forwarded-Proto", "https") }, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x/", http.NoBody)
		r.RemoteAddr = "192.0.2.9:1234"
		c.change(r)
		if got := g.cookie(r, "k", time.Hour).Secure; got != c.want {
			t.Errorf("%s: Secure is %v", name, got)
		}
	}
}

// The user header counts only if it comes from a trusted proxy. A handler that
// wraps the dashboard takes precedence.
func TestUserHeaderNeedsTrustedProxy(t *testing.T) {
	t.Parallel()
	g := newGuard(Config{Authentication: authentication(t)})
	for name, c := range map[string]struct {
		from   string
		header []string
		ctx    string
		want   string
	}{
		"a trusted proxy":       {"192.0.2.7:80", []string{"carla"}, "", "carla"},
		"as IPv4 in IPv6":       {"[::ffff:192.0.2.7]:80", []string{"carla"}, "", "carla"},
		"another address":       {"198.51.100.7:80", []string{"carla"}, "", ""},
		"no address":            {"@", []string{"carla"}, "", ""},
		"two users":             {"192.0.2.7:80", []string{"carla", "root"}, "", ""},
		"a line end":            {"192.0.2.7:80", []string{"car\nla"}, "", ""},
		"a name without end":    {"192.0.2.7:80", []string{strings.Repeat("x", maxUser+1)}, "", ""},
		"no text":               {"192.0.2.7:80", []string{"\xff"}, "", ""},
		"the handler around it": {"198.51.100.7:80", nil, "dora", "dora"},
		"a handler of no user":  {"198.51.100.7:80", nil, "\x00", ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = c.from
		for _, user := range c.header {
			r.Header.Add("X-Forwarded-User", user)
		}
		if c.ctx != "" {
			r = r.WithContext(WithUser(r.Context(), c.ctx))
		}
		if v := g.identify(r); v.user != c.want || (v.way == byBrowser) != (c.want != "") {
			t.Errorf("%s: %+v; want %q", name, v, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-Forwarded-For", "203.0.113.9, 2001:db8::1")
	for from, want := range map[string]string{"192.0.2.7:80": "2001:db8::/64", "198.51.100.7:80": "198.51.100.7"} {
		if r.RemoteAddr = from; g.addressOf(r) != want {
			t.Errorf("from %s: %s; want %s", from, g.addressOf(r), want)
		}
	}
}

// On the loopback interface, only requests for the dashboard's own host names
// are answered.
func TestHostsAcceptsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		local string
		hosts []string
		host  string
		want  bool
	}{
		{"127.0.0.1", nil, "localhost:8080", true}, {"127.0.0.1", nil, "127.0.0.1", true}, {"127.0.0.1", nil, "[::1]:80", true}, {"127.0.0.1", nil, "evil.example", false},
		{"127.0.0.1", nil, "127.0.0.1.evil.example", false}, {"127.0.0.1", nil, "", false}, {"127.0.0.1", nil, "192.0.2.1", false},
		{"127.0.0.1", []string{"Dash.example"}, "dash.EXAMPLE:443", true}, {"192.0.2.1", nil, "any.example", true}, {"192.0.2.1", []string{"dash.example"}, "any.example", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.local)}))
		if got := newGuard(Config{Hosts: c.hosts}).knownHost(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A request whose body does not arrive is abandoned.
func TestSlowBodyIsAbandoned(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)})
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	_, err = fmt.Fprintf(conn, "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(began.Add(4 * bodyTimeout))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // the connection is cut after it
	if took := time.Since(began); response.StatusCode != http.StatusBadRequest || took < bodyTimeout/2 {
		t.Errorf("%s after %v", response.Status, took)
	}
}

// Names of nodes and roles are data in JSON, whatever characters they contain,
// and never become part of a page.
func TestNamesAreEncodedAsData(t *testing.T) {
	t.Parallel()
	names := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, strings.Repeat("🦊", 63), "\u202egnorw\u202c \u05d0\u05d1", `</title><svg onload=alert(1)>`, "a/b?c#d%2f", `' OR 1=1 --`,
	}
	w := newWorld(t, Config{})
	w.node(names[0], names...)
	for _, name := range names {
		w.led(name, names[0])
		for _, path := range []string{"role?name=", "terms?role=", "timeline?role=", "roles?search=", "failovers?role=", "events?search="} {
			response, text := w.request(http.MethodGet, "/api/"+path+escaped(name), "")
			if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" || strings.ContainsAny(text, "<>") || !json.Valid([]byte(text)) {
				t.Errorf("%s%s: %s %s", path, name, response.Status, text)
			}
		}
	}
	if n := get[list[roleRecord]](w, "/api/roles").Total; n != len(names) {
		t.Errorf("%d roles", n)
	}
	for name, want := range map[string]string{
		"a\nb\x00c": isolate + "a b c" + ended, "\u202ea\u2069b": isolate + "ab" + ended, strings.Repeat("🦊", 200): isolate + strings.Repeat("🦊", mostRunes) + "…" + ended,
	} {
		if got := quoted(name); got != want {
			t.Errorf("%q in a sentence: %q", name, got)
		}
	}
}

// A requested action is done, its outcome is shown, and its requester is
// recorded.
func TestActionsAreDoneAndRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)})
	first, _ := w.node("api-1", "scheduler")
	before := w.led("scheduler", "api-1")
	second, _ := w.node("api-2", "scheduler")
	w.await("both nodes are shown", func() bool { return w.board.snapshot.now().Living == 2 })
	w.exec("INSERT INTO {processors} (name, kind, role) VALUES ('invoices', 'view', 'x')")
	w.exec("INSERT INTO {schedules} (name, role, expression, timezone) VALUES ('nightly', 'x', '30 2 * * *', 'UTC')")
	act := func(pairs map[string]any) outcome {
		t.Helper()
		response, text := w.request(http.MethodPost, "/api/actions", object(pairs), "Authorization", "Bearer "+annasToken)
		var o outcome
		if err := json.Unmarshal([]byte(text), &o); err != nil || response.StatusCode != http.StatusOK || !o.Done {
			t.Errorf("%v: %s %s", pairs, response.Status, text)
		}
		return o
	}
	if o := act(map[string]any{"action": stepDown, "name": "scheduler"}); !strings.Contains(o.Message, "api-2"+ended+" leads now") {
		t.Errorf("the outcome of a step-down: %s", o.Message)
	}
	w.led("scheduler", "api-2")
	terms := get[list[termRecord]](w, "/api/terms?role=scheduler")
	if last := terms.Rows[1]; last.Term != before.Term || last.By != "anna" || last.Reason != string(history.EndSteppedDown) {
		t.Errorf("the record of a step-down: %+v", last)
	}
	if o := act(map[string]any{"action": handOver, "name": "scheduler", "node": first.ID()}); !strings.Contains(o.Message, "api-1"+ended+" leads now") {
		t.Errorf("the outcome of a hand-over: %s", o.Message)
	}
	act(map[string]any{"action": drain, "node": second.ID()})
	w.await("the drain is shown", func() bool { return w.board.snapshot.now().Nodes[0].Status == tenure.StatusDraining }) // it comes before the active one
	act(map[string]any{"action": undrain, "node": second.ID()})
	w.await("the changes of the node name who asked", func() bool {
		asked := slices.DeleteFunc(get[list[eventRecord]](w, "/api/events?kind=node").Rows, func(e eventRecord) bool { return e.By != "anna" })
		return len(asked) == 2 && asked[0].Status == string(tenure.StatusActive) && asked[1].Status == string(tenure.StatusDraining)
	})
	act(map[string]any{"action": pauseProcessor, "name": "invoices"})
	act(map[string]any{"action": resumeProcessor, "name": "invoices"})
	act(map[string]any{"action": pauseSchedule, "name": "nightly"})
	act(map[string]any{"action": resumeSchedule, "name": "nightly"})
	if o := act(map[string]any{"action": triggerSchedule, "name": "nightly"}); !strings.Contains(o.Message, "no leader has it") {
		t.Errorf("the outcome of a run that no node leads: %s", o.Message)
	}
	var recorded int
	row := w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT count(*) FROM {changes} WHERE changed_by = 'anna'"))
	if err := row.Scan(&recorded); err != nil || recorded < 8 {
		t.Errorf("%d actions are recorded (%v)", recorded, err)
	}
	if events := get[list[eventRecord]](w, "/api/events?kind=action"); events.Total != 9 || events.Rows[0].By != "anna" {
		t.Errorf("%d actions are shown: %+v", events.Total, events.Rows)
	}
	for _, refused := range []map[string]any{
		{"action": stepDown, "name": "unknown"}, {"action": pauseProcessor, "name": "unknown"}, {"action": triggerSchedule, "name": "unknown"},
		{"action": drain, "node": "00000000-0000-4000-8000-000000000001"}, {"action": handOver, "name": "scheduler"},
	} {
		response, text := w.request(http.MethodPost, "/api/actions", object(refused), "Authorization", "Bearer "+annasToken)
		if response.StatusCode/100 != 4 || !strings.Contains(text, "error") {
			t.Errorf("%v: %s %s", refused, response.Status, text)
		}
	}
}

// An invalid configuration is refused, and the error reveals no secret.
func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	for name, config := range map[string]Config{
		"no backend": {}, "no slash": {Backend: w.backend, BasePath: "x"}, "a slash at the end": {Backend: w.backend, BasePath: "/x/"}, "dots": {Backend: w.backend, BasePath: "/../x"},
		"a pattern": {Backend: w.backend, BasePath: "/{x}"}, "no proxies": {Backend: w.backend, Authentication: Authentication{UserHeader: "X"}},
		"no network": {Backend: w.backend, Authentication: Authentication{UserHeader: "X", TrustedProxies: []netip.Prefix{{}}}},
	} {
		if d, err := New(config); err == nil {
			d.Close()
			t.Errorf("%s is accepted", name)
		}
	}
	for user, secret := range map[string]string{"": annasToken, "anna": "short", "a\nb": annasToken} {
		for _, err := range []error{func() error { _, err := Tokens(nil, map[string]string{user: secret}); return err }(), func() error { _, err := Passwords(map[string]string{user: secret}, nil); return err }()} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", user, err)
			}
		}
	}
}
