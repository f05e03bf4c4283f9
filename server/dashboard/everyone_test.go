package dashboard

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// directory knows the users of all ways to authenticate, and can remove them.
type directory struct {
	all Authentication

	mu      sync.Mutex
	removed map[string]bool // users, and "tokens" and "passwords"
}

func newDirectory(t *testing.T) *directory {
	return &directory{all: authentication(t), removed: map[string]bool{}}
}

func (d *directory) remove(users ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, user := range users {
		d.removed[user] = true
	}
}

func (d *directory) knows(user string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.removed[user]
}

// authentication requires a login and accepts every way.
func (d *directory) authentication() Authentication {
	who := d.all
	who.Required = true
	who.Token = func(token string) (User, bool) {
		user, ok := d.all.Token(token)
		return user, ok && d.knows(user.Name)
	}
	who.Password = func(user, password string) (Access, bool) {
		access, ok := d.all.Password(user, password)
		return access, ok && d.knows(user)
	}
	known := map[string]Access{"olga": Operator, "vera": Viewer}
	find := func(name string) (User, error) {
		access, ok := known[name]
		if !ok || !d.knows(name) {
			return User{Name: name}, ErrNoAccess
		}
		return User{name, access}, nil
	}
	who.SignOn = &SignOn{
		Begin: func(_ context.Context, flow Flow) (string, error) {
			return "https://id.example/authorize?" + url.Values{"state": {flow.State}}.Encode(), nil
		},
		Finish:  func(_ context.Context, query url.Values, _ Flow) (User, error) { return find(query.Get("code")) },
		Recheck: func(_ context.Context, user User, _ Flow) (User, error) { return find(user.Name) },
	}
	return who
}

// signOn logs a user in at the other site and returns the cookie of the session.
func (w *world) signOn(user string) (cookie string) {
	w.Helper()
	begun, text := w.request(http.MethodGet, "/login", "")
	address, err := url.Parse(begun.Header.Get("Location"))
	if err != nil || len(begun.Cookies) != 1 {
		w.Fatalf("begin: %s %s %v", begun.Status, text, err)
	}
	path := "/login/callback?" + url.Values{"code": {user}, "state": {address.Query().Get("state")}}.Encode()
	finished, text := w.request(http.MethodGet, path, "", "Cookie", begun.Cookies[0].Name+"="+begun.Cookies[0].Value)
	for _, c := range finished.Cookies {
		if strings.Contains(c.Name, cookieName) {
			return c.Name + "=" + c.Value
		}
	}
	w.Fatalf("%s is not logged in: %s %s", user, finished.Status, text)
	return ""
}

// caller is a sender of requests with what it may do.
type caller struct {
	headers       []string
	may           string // "nothing", "view" or "act"
	canBeRecalled bool   // its access can be taken away while a stream is open
}

// callers returns everybody. Each of the later ones had access that has ended.
func callers(w *world, d *directory) (present map[string]caller, end func() map[string]caller) {
	w.Helper()
	viewers, viewersForgery := w.logIn(violasToken)
	operators, operatorsForgery := w.logIn(annasToken)
	olga, vera := w.signOn("olga"), w.signOn("vera")
	basic := func(user, password string) string {
		r, _ := http.NewRequest(http.MethodGet, "/", http.NoBody)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	forgery := func(cookie string) string { return get[sessionRecord](w, "/api/session", "Cookie", cookie).Token }
	known := map[string]caller{
		"a viewer's token":              {[]string{"Authorization", "Bearer " + violasToken}, "view", true},
		"a viewer's cookie":             {[]string{"Cookie", viewers, "X-CSRF-Token", viewersForgery}, "view", true},
		"a viewer's password":           {[]string{"Authorization", basic("vito", vitosPassword), "X-CSRF-Token", ""}, "view", true},
		"a viewer of the other site":    {[]string{"Cookie", vera, "X-CSRF-Token", forgery(vera)}, "view", true},
		"an operator's token":           {[]string{"Authorization", "Bearer " + annasToken}, "act", true},
		"an operator's cookie":          {[]string{"Cookie", operators, "X-CSRF-Token", operatorsForgery}, "act", true},
		"an operator of the other site": {[]string{"Cookie", olga, "X-CSRF-Token", forgery(olga)}, "act", true},
	}
	present = maps.Clone(known)
	maps.Copy(present, map[string]caller{
		"nobody":                          {nil, "nothing", false},
		"a forged header of a proxy":      {[]string{"X-Forwarded-User", "anna", "X-Forwarded-For", "192.0.2.7"}, "nothing", false},
		"a forged cookie":                 {[]string{"Cookie", cookieName + "=AAAAAAAAAAAAAAAAAAAAAAAAAA"}, "nothing", false},
		"a forged token":                  {[]string{"Authorization", "Bearer forged-token-of-16-bytes"}, "nothing", false},
		"a cookie with another's forgery": {[]string{"Cookie", operators, "X-CSRF-Token", viewersForgery}, "view", false},
	})
	return present, func() map[string]caller {
		d.remove("anna", "bert", "viola", "vito", "olga", "vera")
		ended := map[string]caller{}
		for name, c := range known {
			ended[name] = caller{c.headers, "nothing", false}
		}
		return ended
	}
}

// gates are what each route of the dashboard requires, with the status for those who may.
// A route that is not here fails the test: decide who may use it, and add it.
var gates = map[string]struct {
	needs  string // "nothing", "view" or "act"
	status int
}{
	"GET /{$}":            {"nothing", 200},
	"GET /assets/*":       {"nothing", 200},
	"GET /favicon.ico":    {"nothing", 200},
	"POST /api/login":     {"nothing", 415}, // without a token
	"POST /api/logout":    {"nothing", 200},
	"GET /api/session":    {"nothing", 200},
	"GET /login":          {"nothing", 303},
	"GET /login/callback": {"nothing", 400},
	"/":                   {"nothing", 404},
	"GET /api/now":        {"view", 200},
	"GET /api/roles":      {"view", 200},
	"GET /api/role":       {"view", 404},
	"GET /api/terms":      {"view", 404},
	"GET /api/timeline":   {"view", 404},
	"GET /api/nodes":      {"view", 200},
	"GET /api/node":       {"view", 404},
	"GET /api/schedule":   {"view", 404},
	"GET /api/run":        {"view", 404},
	"GET /api/processor":  {"view", 404},
	"GET /api/events":     {"view", 200},
	"GET /api/failovers":  {"view", 200},
	"GET /api/incidents":  {"view", 200},
	"GET /api/incident":   {"view", 404},
	"GET /api/lanes":      {"view", 200},
	"GET /api/graphs":     {"view", 400},
	"GET /api/audit":      {"view", 200},
	"GET /api/stream":     {"view", 200},
	"POST /api/actions":   {"act", 404},
}

// gateOf names a route in the table of gates.
func gateOf(pattern string) string {
	if strings.HasPrefix(pattern, "GET /assets/") {
		return "GET /assets/*"
	}
	return pattern
}

// Every route answers each kind of caller as its row says, also once the caller's access
// has ended.
func TestEveryRouteAsEverybody(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	w := newWorld(t, Config{Authentication: d.authentication()})
	var minutes sync.Mutex
	clock := time.Now()
	w.board.guard.attempts.Now = func() time.Time { // so that no caller is refused for the guesses of another
		minutes.Lock()
		defer minutes.Unlock()
		clock = clock.Add(2 * time.Minute)
		return clock
	}
	var patterns []string
	for _, r := range w.board.table() {
		patterns = append(patterns, r.pattern)
		if _, ok := gates[gateOf(r.pattern)]; !ok {
			t.Errorf("the route %q is in no row: decide who may use it", r.pattern)
		}
	}
	for pattern := range gates {
		if !slices.ContainsFunc(patterns, func(p string) bool { return gateOf(p) == pattern }) {
			t.Errorf("the row %q is of no route", pattern)
		}
	}
	tryAll := func(when string, all map[string]caller) {
		t.Helper()
		for name, c := range all {
			for _, pattern := range patterns {
				w.tryRoute(when+name, c, pattern)
			}
		}
	}
	present, end := callers(w, d)
	tryAll("", present)
	ended := end()
	// After a check of the other site is due.
	w.board.guard.sessions.now = func() time.Time { return time.Now().Add(userRecheck) }
	tryAll("after its end, ", ended)
}

// Login sessions last for 12 hours, on every route.
func TestEveryRouteRefusesExpiredLogins(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	w := newWorld(t, Config{Authentication: d.authentication()})
	present, _ := callers(w, d)
	w.board.guard.sessions.now = func() time.Time { return time.Now().Add(sessionLife) }
	for _, name := range []string{"a viewer's cookie", "an operator's cookie", "a viewer of the other site", "an operator of the other site"} {
		for _, r := range w.board.table() {
			w.tryRoute("12 hours later, "+name, caller{present[name].headers, "nothing", false}, r.pattern)
		}
	}
}

// tryRoute sends a request to a route and compares the answer with the row.
func (w *world) tryRoute(name string, c caller, pattern string) {
	w.Helper()
	if pattern == "POST /api/logout" { // the caller is needed for other routes
		c.headers = nil
	}
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = http.MethodGet, pattern+"nothing"
	}
	path = strings.TrimSuffix(path, "{$}")
	body := ""
	if path == "/api/actions" {
		body = `{"action":"unknown"}`
	}
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel() // ends a stream
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(c.headers); i += 2 {
		r.Header.Set(c.headers[i], c.headers[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	gate := gates[gateOf(pattern)]
	want := gate.status
	switch {
	case gate.needs == "view" && c.may == "nothing", gate.needs == "act" && c.may == "nothing":
		want = http.StatusUnauthorized
	case gate.needs == "act" && c.may == "view":
		want = http.StatusForbidden
	}
	if response.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		w.Errorf("%s: %s is answered with %s %s; the row says %d", name, pattern, response.Status, text, want)
	}
}

// An open stream ends within a minute after the access of its caller has ended, whichever
// way that was.
func TestEndOfAccessReachesOpenStreams(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	d := newDirectory(t)
	w := newWorld(t, Config{Authentication: d.authentication()})
	present, end := callers(w, d)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ends := make(chan string)
	open := 0
	for name, c := range present {
		if !c.canBeRecalled {
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/api/stream", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		response, err := transport.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: the stream: %v %v", name, response, err)
		}
		open++
		t.Cleanup(func() { _ = response.Body.Close() })
		go func() { // exits when the stream ends, or with the server
			_, _ = io.Copy(io.Discard, response.Body)
			ends <- name
		}()
	}
	end()
	limit, left := time.After(time.Minute), map[string]bool{}
	for name, c := range present {
		left[name] = c.canBeRecalled
	}
	for ; open > 0; open-- {
		select {
		case name := <-ends:
			delete(left, name)
		case <-limit:
			maps.DeleteFunc(left, func(_ string, open bool) bool { return !open })
			t.Fatalf("a minute after their access ended, the streams of %v are open", slices.Sorted(maps.Keys(left)))
		}
	}
}
