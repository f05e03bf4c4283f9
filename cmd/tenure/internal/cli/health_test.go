package cli

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
)

// listenSilently returns the address of a server that accepts and sends nothing.
func listenSilently(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// switchProtocol answers a request with another protocol, of which it sends nothing.
func switchProtocol(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	_, _ = io.Copy(io.Discard, conn) // until the client closes it
	_ = conn.Close()
}

func TestHealthExitCodeFollowsAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/switch" {
			switchProtocol(w)
			return
		}
		if r.URL.Path != "/good" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte("{\"status\":\x1b1}\n"))
	}))
	defer server.Close()
	for url, test := range map[string]struct {
		code int
		want string
	}{
		server.URL + "/good":               {console.ExitDone, "200 OK: {\"status\":\\u001b1}\n"},
		server.URL + "/bad":                {console.ExitNotAcquired, "503"},
		server.URL + "/switch":             {console.ExitNotAcquired, ""},
		"http://127.0.0.1:1/healthz":       {console.ExitNotAcquired, ""},
		"http://" + listenSilently(t):      {console.ExitNotAcquired, ""},
		"127.0.0.1:8080":                   {console.ExitUsage, ""},
		"ftp://127.0.0.1/healthz":          {console.ExitUsage, ""},
		"http://127.0.0.1:8080/\x7fhealth": {console.ExitUsage, ""},
	} {
		began := time.Now()
		got := invokeWith(t, []string{"HTTP_PROXY=http://127.0.0.1:1"}, "health", "--url", url, "--timeout", "1s").want(t, test.code)
		if !strings.Contains(got.stdout, test.want) {
			t.Errorf("%s: %q", url, got.stdout)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: %v", url, took)
		}
	}
}
