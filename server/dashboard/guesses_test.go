package dashboard

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure/internal/httpguard"
)

// TestParallelGuessesAreLimited: guesses that one address sends at the same instant are
// checked no more often than guesses in turn, by login and by header.
func TestParallelGuessesAreLimited(t *testing.T) {
	t.Parallel()
	const parallel = 10 * httpguard.MaxAttempts
	for way, ask := range map[string]func(*guard) int{
		"login": func(g *guard) int {
			r := httptest.NewRequest(http.MethodPost, "/api/login", strings.NewReader(`{"token":"wrong"}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			g.login(w, r)
			return w.Code
		},
		"header": func(g *guard) int {
			r := httptest.NewRequest(http.MethodGet, "/api/now", http.NoBody)
			r.Header.Set("Authorization", "Bearer wrong")
			w := httptest.NewRecorder()
			g.reading(func(http.ResponseWriter, *http.Request) {}).ServeHTTP(w, r)
			return w.Code
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var guesses, refusals atomic.Int64
			g := newGuard(Config{Logger: slog.New(slog.DiscardHandler), Authentication: Authentication{Required: true, Token: func(string) (User, bool) {
				guesses.Add(1)
				time.Sleep(time.Second) // of the test's own clock: all requests are under way together
				return User{}, false
			}}})
			var group sync.WaitGroup
			for range parallel {
				group.Go(func() {
					if ask(g) == http.StatusTooManyRequests {
						refusals.Add(1)
					}
				})
			}
			group.Wait()
			if guesses.Load() != httpguard.MaxAttempts || refusals.Load() < parallel-httpguard.MaxAttempts {
				t.Errorf("%s: of %d parallel guesses, %d were checked and %d refused; want %d checked",
					way, parallel, guesses.Load(), refusals.Load(), httpguard.MaxAttempts)
			}
		})
	}
}
