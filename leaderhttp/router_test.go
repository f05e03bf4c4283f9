package leaderhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/leaderhttp"
)

func TestForwardToLeaderReachesLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.serve("a", leaderhttp.Config{}, nil), w.serve("b", leaderhttp.Config{}, nil)
	term := w.lead(a)
	w.start(b)
	want := fmt.Sprintf("a %d hello", term.Number())
	for _, s := range []*service{a, b} {
		if got := w.do("POST", s.server.URL+"/orders?x=1;y", "hello"); got.StatusCode != http.StatusOK || got.body != want {
			t.Errorf("through %s: %d %q, want %q", s.election.Node().Name(), got.StatusCode, got.body, want)
		}
	}
	if n := b.handled.Load(); n != 0 {
		t.Errorf("the standby handled %d requests, want 0", n)
	}
}

func TestLeaderOnlyNamesLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.serve("a", leaderhttp.Config{}, nil), w.serve("b", leaderhttp.Config{}, nil)
	w.lead(a)
	w.start(b)
	if got := w.do("GET", a.server.URL+"/only", ""); got.StatusCode != http.StatusOK {
		t.Errorf("the leader: %d %s", got.StatusCode, got.body)
	}
	testkit.Await(w, "the standby names the leader", func() bool {
		got := w.do("GET", b.server.URL+"/only", "")
		if got.StatusCode != http.StatusServiceUnavailable || got.code() != "not_leader" || got.Header.Get("Retry-After") == "" {
			t.Fatalf("the standby: %d %s", got.StatusCode, got.body)
		}
		return got.Header.Get(leaderhttp.LeaderHeader) == strings.TrimPrefix(a.server.URL, "http://") && strings.Contains(got.body, `"zone":"a"`)
	})
}

// A request that arrives while the role is vacant is handled once, by the next
// leader, also if that is the node that received it.
func TestForwardToLeaderWaitsForLeader(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a", "b"} {
		w := newWorld(t)
		services := map[string]*service{"a": w.serve("a", leaderhttp.Config{}, nil), "b": w.serve("b", leaderhttp.Config{}, nil)}
		replies := make(chan reply, 1)
		go func() { replies <- w.do("POST", services["b"].server.URL, "hello") }()
		w.lead(services[next])
		if got := <-replies; got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, next+" ") || !strings.HasSuffix(got.body, " hello") {
			t.Errorf("%d %q, want an answer of %s", got.StatusCode, got.body, next)
		}
		if n := services["a"].handled.Load() + services["b"].handled.Load(); n != 1 {
			t.Errorf("the request was handled %d times, want 1", n)
		}
	}
}

func TestForwardToLeaderGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.serve("b", leaderhttp.Config{Wait: 50 * time.Millisecond}, nil)
	if got := w.do("GET", b.server.URL, ""); got.StatusCode != http.StatusServiceUnavailable || got.code() != "no_leader" || got.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s, want 503 without a leader", got.StatusCode, got.body)
	}
}

func TestForwardToLeaderBoundsWaitingRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.serve("b", leaderhttp.Config{MaxWaiting: 2, Wait: patience}, nil)
	codes := make(chan string, 3)
	for range 3 {
		go func() { codes <- w.do("GET", b.server.URL, "").code() }()
	}
	if code := <-codes; code != "too_many_waiting" {
		t.Errorf("the first answer has code %q, want too_many_waiting", code)
	}
	w.lead(b)
	for range 2 {
		if code := <-codes; code != "" {
			t.Errorf("a waiting request got code %q, want success", code)
		}
	}
}

// asked is a context that reports when its end is asked for.
type asked struct {
	context.Context
	once sync.Once
	was  chan struct{}
}

func (a *asked) Done() <-chan struct{} {
	a.once.Do(func() { close(a.was) })
	return a.Context.Done()
}

// Another node can know of a term, and forward a request, before the leader does.
func TestForwardedRequestWaitsForTermThatBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.serve("a", leaderhttp.Config{Wait: 10 * patience}, nil)
	waits := &asked{Context: t.Context(), was: make(chan struct{})}
	req := httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(waits)
	req.Header.Set(leaderhttp.ForwardedHeader, "b")
	answer, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		a.server.Config.Handler.ServeHTTP(answer, req)
	}()
	select {
	case <-waits.was:
	case <-answered:
		t.Fatalf("it was refused immediately: %d %s", answer.Code, answer.Body)
	}
	w.lead(a)
	<-answered
	if answer.Code != http.StatusOK || !strings.HasPrefix(answer.Body.String(), "a ") {
		t.Errorf("%d %s, want an answer of a", answer.Code, answer.Body)
	}
}

func TestSecondHopIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.serve("a", leaderhttp.Config{}, nil), w.serve("b", leaderhttp.Config{Wait: time.Second}, nil)
	w.lead(a)
	w.start(b)
	got := w.do("GET", b.server.URL, "", leaderhttp.ForwardedHeader, "c")
	if got.StatusCode != http.StatusLoopDetected || !strings.Contains(got.body, "forwarded, by c") {
		t.Errorf("the standby: %d %s, want 508 that names c", got.StatusCode, got.body)
	}
	if got := w.do("GET", a.server.URL, "", leaderhttp.ForwardedHeader, "c"); got.StatusCode != http.StatusOK {
		t.Errorf("the leader: %d %s, want 200", got.StatusCode, got.body)
	}
}

// The leader of the database refuses connections at first, and then breaks the
// first one that it has accepted.
func TestForwardToLeaderNeverSendsTwice(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST"} {
		w := newWorld(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		var connections, attempts atomic.Int64
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				connections.Add(1)
				_, _ = bufio.NewReader(conn).ReadString('\n')
				conn.Close()
			}
		}()
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		closed.Close()
		b := w.serve("b", leaderhttp.Config{Address: func(tenure.Leader) string {
			if attempts.Add(1) <= 3 {
				return closed.Addr().String()
			}
			return listener.Addr().String()
		}}, nil)
		leader := w.election("a", tenure.Description{})
		if err := leader.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		body := ""
		if method == "POST" {
			body = strings.Repeat("hello ", 10_000)
		}
		got := w.do(method, b.server.URL, body, "Idempotency-Key", "1")
		if got.StatusCode != http.StatusBadGateway || got.code() != "no_answer" {
			t.Errorf("%s: %d %s, want 502", method, got.StatusCode, got.body)
		}
		if n := connections.Load(); n != 1 {
			t.Errorf("%s: the request was sent %d times, want once", method, n)
		}
	}
}

// A stream through a standby, and one from the leader itself, are cut when the term
// ends, although the handler ignores its context.
func TestStreamsAreCutWhenTermEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	var releaseOnce sync.Once
	end := func() { releaseOnce.Do(func() { close(release) }) }
	t.Cleanup(end)
	stream := func(out http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(out, "x\n"); err != nil {
				return
			}
			if http.NewResponseController(out).Flush() != nil {
				return
			}
			select {
			case <-release:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	a, b := w.serve("a", leaderhttp.Config{}, stream), w.serve("b", leaderhttp.Config{}, nil)
	w.lead(a)
	w.start(b)
	ended := make(chan error, 2)
	for _, s := range []*service{a, b} {
		response, err := http.Get(s.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		reader := bufio.NewReader(response.Body)
		if line, err := reader.ReadString('\n'); line != "x\n" {
			t.Fatalf("%q, %v; want the first line of the stream", line, err)
		}
		go func() {
			_, err := io.Copy(io.Discard, reader)
			ended <- err
		}()
	}
	begun := time.Now()
	w.db.Revoke(billing)
	for range 2 {
		if err := testkit.Receive(t, ended, patience, "a stream was not cut"); err == nil {
			t.Error("a stream ended as if it were complete, want an error")
		}
		if took := time.Since(begun); took > 1500*time.Millisecond { // a busy machine may add to the quarter of a second
			t.Errorf("the stream was cut %v after the term ended, want a quarter of a second", took)
		}
	}
	testkit.Await(w, "b handles requests", func() bool {
		return strings.HasPrefix(w.do("GET", b.server.URL, "").body, "b ")
	})
}

// A request that a leader has begun ends before its role is released.
func TestStepDownWaitsForRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	a := w.serve("a", leaderhttp.Config{}, func(out http.ResponseWriter, req *http.Request) {
		close(entered)
		<-leave
		fmt.Fprint(out, leaderhttp.Term(req.Context()).Valid())
	})
	b := w.serve("b", leaderhttp.Config{}, nil)
	w.lead(a)
	w.start(b)
	slow := make(chan reply, 1)
	go func() { slow <- w.do("GET", b.server.URL, "") }()
	<-entered
	down := make(chan error, 1)
	go func() { down <- a.election.StepDown(t.Context()) }()
	later := make(chan reply, 1)
	testkit.Await(w, "the leader takes no new request", func() bool {
		guard, err := a.election.Guard()
		if err == nil {
			guard.Done()
		}
		return err != nil
	})
	go func() { later <- w.do("GET", a.server.URL, "") }()
	close(leave)
	if got := <-slow; got.StatusCode != http.StatusOK || got.body != "true" {
		t.Errorf("the request in flight: %d %q, want an answer under a valid term", got.StatusCode, got.body)
	}
	if err := <-down; err != nil {
		t.Errorf("step down: %v", err)
	}
	if got := <-later; got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, "b ") {
		t.Errorf("the later request: %d %q, want an answer of b", got.StatusCode, got.body)
	}
}

func TestHealthHandlersReportTheNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.serve("a", leaderhttp.Config{}, nil), w.serve("b", leaderhttp.Config{}, nil)
	if got := w.do("GET", b.server.URL+"/readyz", ""); got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got.body, "does not campaign") {
		t.Errorf("/readyz of a node that does not campaign: %d %s", got.StatusCode, got.body)
	}
	term := w.lead(a)
	w.start(b)
	for _, test := range []struct {
		url    string
		status int
		want   string
	}{
		{a.server.URL + "/healthz", http.StatusOK, `"ok"`},
		{a.server.URL + "/readyz", http.StatusOK, `"ready":true`},
		{b.server.URL + "/readyz", http.StatusOK, `"ready":true`},
		{a.server.URL + "/leader", http.StatusOK, fmt.Sprintf(`"leading":true,"term":%d`, term.Number())},
		{b.server.URL + "/leader", http.StatusServiceUnavailable, `"leading":false`},
	} {
		if got := w.do("GET", test.url, ""); got.StatusCode != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s: %d %s, want %d with %s", test.url, got.StatusCode, got.body, test.status, test.want)
		}
	}
}

// A proxy belongs to no candidate.
func TestProxyForwardsToLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.serve("a", leaderhttp.Config{}, nil)
	proxy, err := leaderhttp.NewProxy(t.Context(), w.db, billing, leaderhttp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	server := newServer(t, proxy)
	replies := make(chan reply, 1)
	go func() { replies <- w.do("POST", server, "hello") }()
	w.lead(a)
	if got := <-replies; got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, "a ") {
		t.Errorf("%d %q, want an answer of a", got.StatusCode, got.body)
	}
	if got := w.do("GET", server, "", leaderhttp.ForwardedHeader, "c"); got.StatusCode != http.StatusLoopDetected {
		t.Errorf("a forwarded request: %d %s, want 508", got.StatusCode, got.body)
	}
}
