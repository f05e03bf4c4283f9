package leaderhttp_test

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

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/leaderhttp"
	"github.com/exactly-one/tenure/tenuretest"
)

// Without a leader, a request waits for 10 s, and 1,024 requests wait at a time.
func TestZeroConfigGetsDocumentedLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proxy, err := leaderhttp.NewProxy(t.Context(), tenuretest.NewDatabase(), billing, leaderhttp.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer proxy.Close()
		begun := time.Now()
		var group sync.WaitGroup
		var waited, refused atomic.Int64
		for range 1030 {
			group.Go(func() {
				answer := httptest.NewRecorder()
				proxy.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
				switch took := time.Since(begun); {
				case strings.Contains(answer.Body.String(), "too_many_waiting") && took == 0:
					refused.Add(1)
				case answer.Code != http.StatusServiceUnavailable:
					t.Errorf("the status is %d, want 503", answer.Code)
				case took != 10*time.Second:
					t.Errorf("requests wait for %v, want 10s", took)
				default:
					waited.Add(1)
				}
			})
		}
		group.Wait()
		if waited.Load() != 1024 || refused.Load() != 6 {
			t.Errorf("%d requests waited and %d were refused, want 1024 and 6", waited.Load(), refused.Load())
		}
	})
}

// A request that another node forwarded waits a tenth of Config.Wait for this node to lead.
func TestForwardedRequestWaitsForATenth(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]time.Duration{0: time.Second, time.Minute: 6 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			quiet := slog.New(slog.DiscardHandler)
			node, err := tenure.Open(t.Context(), tenuretest.NewDatabase(), tenure.Config{Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			election, err := node.Election(billing)
			if err != nil {
				t.Fatal(err)
			}
			router, err := leaderhttp.New(t.Context(), election, leaderhttp.Config{Wait: wait, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			req.Header.Set(leaderhttp.ForwardedHeader, "b")
			answer, begun := httptest.NewRecorder(), time.Now()
			router.ForwardToLeader(http.NotFoundHandler()).ServeHTTP(answer, req)
			if took := time.Since(begun); answer.Code != http.StatusLoopDetected || took != want {
				t.Errorf("with a wait of %v, the answer is %d after %v; want 508 after %v", wait, answer.Code, took, want)
			}
			router.Close()
			if err := node.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
