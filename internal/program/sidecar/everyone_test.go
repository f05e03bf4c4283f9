package sidecar

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gates are who may use each route: everybody, those who may view, those with either
// token, or operators. A route that is not here fails the test: decide who may use it,
// and add it.
var gates = map[string]string{}

func gate(needs string, routes ...string) {
	for _, route := range routes {
		gates[route] = needs
	}
}

func init() {
	gate("nothing", "GET /healthz", "GET /readyz", "GET /leader")
	gate("view", "GET /metrics", "GET /v1/openapi.json", "GET /v1/elections", "GET /v1/leaders", "GET /v1/leaders/{role}", "GET /v1/cluster",
		"GET /v1/nodes", "GET /v1/nodes/watch", "GET /v1/nodes/{node}", "GET /v1/events", "GET /v1/audit")
	gate("view", "GET /v1/schedules", "GET /v1/schedules/{name}", "GET /v1/schedules/{name}/runs", "GET /v1/schedules/{name}/next")
	gate("view", "GET /v1/processors", "GET /v1/processors/{name}", "GET /v1/processors/{name}/dead-letters", "GET /v1/processor-lag")
	gate("token", "GET /v1/schedule-runs/{name}") // the output of a job may be secret
	gate("act", "POST /v1/roles/{role}/guards", "POST /v1/elections/{role}/step-down", "POST /v1/nodes/{node}/drain", "POST /v1/nodes/{node}/undrain")
	gate("act", "POST /v1/schedules", "PATCH /v1/schedules/{name}", "DELETE /v1/schedules/{name}")
	for _, action := range []string{"backfill", "pause", "reset", "resume", "trigger"} {
		gate("act", "POST /v1/schedules/{name}/"+action)
	}
	for _, action := range []string{"dismiss", "pause", "rebuild", "repair", "replay", "resume", "retry", "rewind", "skip"} {
		gate("act", "POST /v1/processors/{name}/"+action)
	}
}

// routesOf returns all routes of a handler, with the names in their paths as {NAME}.
func routesOf(h *Handler) (routes []string) {
	add := func(path string, m methods) {
		for method := range m {
			routes = append(routes, method+" "+path)
		}
	}
	for path, m := range h.paths {
		add(path, m)
	}
	for _, p := range h.named {
		add(p.prefix+"{"+p.value+"}"+p.suffix, p.methods)
	}
	slices.Sort(routes)
	return routes
}

// site is a handler with the tokens of its callers, as of "run --listen" or of "serve"
// that requires a login.
type site struct {
	*testing.T

	h                *Handler
	operator, viewer string // files
}

func newSite(t *testing.T, serve bool) *site {
	s := &site{T: t, operator: writeFile(t, "operator", secret), viewer: writeFile(t, "viewer", viewerSecret)}
	operators, err := OpenToken(s.operator, silent)
	if err != nil {
		t.Fatal(err)
	}
	viewers, err := OpenToken(s.viewer, silent)
	if err != nil {
		t.Fatal(err)
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	config := Config{Token: operators, ViewerToken: viewers, Metrics: metrics}
	if serve {
		config.Protect = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				given, _ := bearer(r.Header.Get("Authorization"))
				if !operators.Matches(given) && !viewers.Matches(given) {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	s.h = newHandler(t, config)
	clock := time.Now()
	s.h.attempts.Now = func() time.Time { // so that no caller is refused for the guesses of another
		clock = clock.Add(2 * time.Minute)
		return clock
	}
	return s
}

// revoke gives both tokens another value, which is in use after checkInterval.
func (s *site) revoke() {
	s.Helper()
	for file, token := range map[string]string{s.operator: "the-next-token-of-operators", s.viewer: "the-next-token-of-viewers"} {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// send requests a route as a caller with headers.
func (s *site) send(route string, headers []string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(route, " ")
	for _, name := range []string{"{role}", "{node}", "{name}"} {
		path = strings.ReplaceAll(path, name, "1")
	}
	r := httptest.NewRequestWithContext(s.Context(), method, path, http.NoBody)
	r.Host = "localhost"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

// want returns the status for a caller that is refused, or 0.
func want(needs, may string, serve bool) int {
	ranks := map[string]int{"nothing": 0, "view": 1, "token": 1, "act": 2}
	if needs == "view" && !serve { // "run --listen" shows the cluster to everybody
		needs = "nothing"
	}
	switch {
	case ranks[may] >= ranks[needs]:
		return 0
	case may == "view":
		return http.StatusForbidden
	default:
		return http.StatusUnauthorized
	}
}

// Every route answers each kind of caller as its row says, also once the caller's token
// has been revoked. Tokens do not expire, and no header names a user.
func TestEveryRouteAsEverybody(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]bool{"run --listen": false, "serve": true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, serve)
			s.h.feed.Close() // so that streams end
			s.h.nodes.Close()
			routes := routesOf(s.h)
			for _, route := range routes {
				if gates[route] == "" {
					t.Errorf("the route %q is in no row: decide who may use it", route)
				}
			}
			for route := range gates {
				if !slices.Contains(routes, route) {
					t.Errorf("the row %q is of no route", route)
				}
			}
			type caller struct {
				headers []string
				may     string
			}
			viewer, operator := []string{"Authorization", "Bearer " + viewerSecret}, []string{"Authorization", "Bearer " + secret}
			tryAll := func(callers map[string]caller) {
				t.Helper()
				for who, c := range callers {
					for _, route := range routes {
						got := s.send(route, c.headers).Code
						refused := got == http.StatusUnauthorized || got == http.StatusForbidden || got == http.StatusTooManyRequests
						if wanted := want(gates[route], c.may, serve); wanted != got && (wanted != 0 || refused) {
							t.Errorf("%s: %s: %s is answered with %d; the row says %d (0: not refused)", name, who, route, got, wanted)
						}
					}
				}
			}
			tryAll(map[string]caller{
				"nobody":          {nil, "nothing"},
				"a viewer":        {viewer, "view"},
				"an operator":     {operator, "act"},
				"a forged token":  {[]string{"Authorization", "Bearer forged-token-of-16-bytes"}, "nothing"},
				"a forged header": {[]string{"X-Forwarded-User", "operator", "X-Forwarded-For", "127.0.0.1", "Cookie", "tenure_session=A"}, "nothing"},
			})
			s.revoke()
			time.Sleep(checkInterval) // of the test's own clock
			tryAll(map[string]caller{"a revoked viewer": {viewer, "nothing"}, "a revoked operator": {operator, "nothing"}})
		})
	}
}

// A stream that needs a login ends within a minute after the token of its client is
// revoked.
func TestRevokedTokensReachEveryStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, true)
		ends, open := make(chan string), map[string]bool{}
		for _, route := range []string{"GET /v1/events", "GET /v1/nodes/watch"} {
			for who, token := range map[string]string{"a viewer": viewerSecret, "an operator": secret} {
				name := who + " of " + route
				open[name] = true
				go func() { // exits when the stream ends, or with the handler
					s.send(route, []string{"Authorization", "Bearer " + token})
					ends <- name
				}()
			}
		}
		time.Sleep(time.Hour) // of the test's own clock
		s.revoke()
		limit := time.After(time.Minute)
		for len(open) > 0 {
			select {
			case name := <-ends:
				delete(open, name)
			case <-limit:
				t.Fatalf("a minute after the tokens were revoked, the streams of %v are open", slices.Sorted(maps.Keys(open)))
			}
		}
	})
}

// "OPTIONS *" is a request of no route: the server answers it like all others, after it
// has checked the name of the host.
func TestRequestOfNoRouteAsEverybody(t *testing.T) {
	t.Parallel()
	_, network, _ := serveInMemory(t, newSite(t, true).h)
	for host, want := range map[string]int{"localhost": http.StatusNotFound, "evil.example.com": http.StatusMisdirectedRequest} {
		t.Run(host, func(t *testing.T) {
			conn, err := network.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != want || answer.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("OPTIONS * is answered with %s, headers %v; want %d and the headers of all answers", answer.Status, answer.Header, want)
			}
		})
	}
}
