package sidecar

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/internal/feed"
	"github.com/exactly-one/tenure/internal/httpguard"
)

// TestWrongTokensAreLimitedPerAddress: after some wrong tokens none is looked at until the minute
// is over, on no path, and others are not locked out.
func TestWrongTokensAreLimitedPerAddress(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Token: newToken(t)})
	now := time.Now()
	h.attempts.Now = func() time.Time { return now }
	post := func(from, path, token string) reply {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, path, http.NoBody)
		r.Host, r.RemoteAddr = "localhost", from+":1"
		r.Header.Set("Authorization", "Bearer "+token)
		return serve(t, h, r)
	}
	paths := []string{"/v1/elections/billing/step-down", "/v1/nodes/one/drain", "/v1/nodes/one/undrain", "/v1/schedules", "/v1/schedules/x/trigger", "/v1/processors/x/pause"}
	for i := range httpguard.MaxAttempts {
		post("192.0.2.1", paths[i%len(paths)], "wrong").refused(t, http.StatusUnauthorized, codeUnauthorized)
	}
	for _, path := range paths {
		for _, token := range []string{"wrong", secret} {
			seen := post("192.0.2.1", path, token).refused(t, http.StatusTooManyRequests, codeGuessing)
			if seen.header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", path)
			}
		}
		post("192.0.2.2", path, secret).refused(t, http.StatusServiceUnavailable, codeStarting) // it is known
	}
	now = now.Add(httpguard.AttemptsPeriod)
	post("192.0.2.1", paths[0], secret).refused(t, http.StatusServiceUnavailable, codeStarting)
}

// TestWrongTokensOfPageAreCounted: the page beside the API counts the same guesses.
func TestWrongTokensOfPageAreCounted(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		attempts := httpguard.AttemptsOf(r.Context(), httpguard.NewAttempts())
		if _, _, err := attempts.Check(r.Context(), "192.0.2.1", func() (bool, error) { return false, nil }); err != nil {
			t.Error(err)
		}
	})
	h := newHandler(t, Config{Token: newToken(t), Page: page})
	for range httpguard.MaxAttempts {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = "localhost"
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	call(t, h, http.MethodPost, "/v1/elections/billing/step-down", "", "Authorization", "Bearer "+secret).
		refused(t, http.StatusTooManyRequests, codeGuessing)
}

// TestForeignHostNamesAreRejected: a page that has given its own name this server's address
// reads nothing; health checks are answered by every name.
func TestForeignHostNamesAreRejected(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	paths := []string{"/leader", "/v1/elections", "/v1/leaders", "/v1/leaders/x", "/v1/cluster", "/v1/nodes", "/v1/nodes/watch", "/v1/events", "/v1/openapi.json", "/v1/schedules", "/v1/schedules/x/runs", "/v1/processors", "/v1/processor-lag", "/metrics", "/", "/nothing"}
	for _, c := range []struct {
		local string
		hosts []string
		host  string
		want  bool
	}{
		{"127.0.0.1", nil, "localhost:8080", true}, {"127.0.0.1", nil, "evil.example", false}, {"127.0.0.1", nil, "10.0.0.1", false},
		{"127.0.0.1", []string{"node.example"}, "node.example:8080", true}, {"127.0.0.1", []string{httpguard.AnyHost}, "evil.example", true},
		{"10.0.0.1", nil, "10.0.0.1:8080", true}, {"10.0.0.1", nil, "tenure.monitoring.svc:8080", true}, {"10.0.0.1", nil, "evil.example", false},
	} {
		h := newHandler(t, Config{Hosts: c.hosts, Metrics: metrics, Page: page})
		h.feed.Close() // so that the streams end
		h.nodes.Close()
		status := func(path, host string) int {
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			r.Host = host
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.local)}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusMisdirectedRequest && !strings.Contains(w.Body.String(), codeHost) {
				t.Errorf("%s: %s", path, w.Body)
			}
			return w.Code
		}
		for _, path := range paths {
			if got := status(path, c.host) != http.StatusMisdirectedRequest; got != c.want {
				t.Errorf("%s by %q on %s with %q: answered: %v", path, c.host, c.local, c.hosts, got)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if status(path, c.host) == http.StatusMisdirectedRequest || status(path, "") == http.StatusMisdirectedRequest {
				t.Errorf("%s is not answered by %q", path, c.host)
			}
		}
		if status("/leader", "") == http.StatusMisdirectedRequest {
			t.Error("a balancer that sends no name is not answered")
		}
	}
}

// TestRevokedTokenEndsStreams: a stream ends soon after its client may look no
// more, be there events or none.
func TestRevokedTokenEndsStreams(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]bool{"idle": false, "busy": true} {
		synctest.Test(t, func(t *testing.T) {
			var valid atomic.Bool
			valid.Store(true)
			h := newHandler(t, Config{Protect: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !valid.Load() {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					next.ServeHTTP(w, r)
				})
			}})
			ended := make(chan string)
			go func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", http.NoBody)
				r.Host = "localhost"
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				ended <- w.Body.String()
			}()
			time.Sleep(time.Minute) // of the test's own clock
			valid.Store(false)
			began := time.Now()
			for i := 0; ; i++ {
				select {
				case text := <-ended:
					if took := time.Since(began); took > recheck+time.Second || !strings.Contains(text, "event: end") || !strings.Contains(text, "revoked") {
						t.Errorf("%s: ended after %v with %q", name, took, text[max(0, len(text)-200):])
					}
					return
				case <-time.After(100 * time.Millisecond):
				}
				if busy {
					publish(h, i, i, 10)
				}
				if time.Since(began) > time.Minute {
					t.Fatalf("%s: the stream continues", name)
				}
			}
		})
	}
}

// TestAnswersArePrintable: what curl shows of foreign names does not act on the
// terminal.
func TestAnswersArePrintable(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	answer(w, http.StatusOK, map[string]string{"name": "a\u009b\u202e\u200b"})
	frame := string(feed.Frame("1", kindElection, "\u009b\u202e"))
	for _, text := range []string{w.Body.String(), frame} {
		if strings.ContainsAny(text, "\u009b\u202e\u200b") || !strings.Contains(text, `\u009b\u202e`) {
			t.Errorf("%q", text)
		}
	}
}
