package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/leaderhttp"
)

// thisMachine is the address of a client on the machine of the proxy.
const thisMachine = "127.0.0.1"

// otherMachine returns an address of this machine that is not loopback. To a proxy, its
// clients are those of another machine.
func otherMachine(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Fatal("this machine has loopback addresses only: give it another one")
	return ""
}

// answeredByLeader is the status of the answers of a leader's program.
const answeredByLeader = http.StatusTeapot

// serveAsLeader is the program of a leader. It answers with the headers that it got,
// sends lines without an end at /stream, and echoes the lines of clients that upgrade.
func serveAsLeader(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	switch {
	case r.Header.Get("Upgrade") != "":
		conn, buffer, err := control.Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if err == nil {
			_, _ = io.Copy(conn, buffer) // ends with the connection
		}
	case r.URL.Path == "/stream":
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for {
			if _, err := io.WriteString(w, "line\n"); err != nil || control.Flush() != nil {
				return
			}
			select {
			case <-pace.C:
			case <-r.Context().Done():
				return
			}
		}
	default:
		w.WriteHeader(answeredByLeader)
		_ = json.NewEncoder(w).Encode(r.Header) // the client may have gone
	}
}

// proxyClient is a connection of a client of a proxy.
type proxyClient struct {
	net.Conn

	*bufio.Reader
}

// connectFrom connects to a port of this machine from one of its addresses.
func connectFrom(from, port string) (proxyClient, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	conn, err := dialer.Dial("tcp", net.JoinHostPort(from, port))
	if err != nil {
		return proxyClient{}, err
	}
	_ = conn.SetDeadline(time.Now().Add(patience)) // reading reports an error
	return proxyClient{conn, bufio.NewReader(conn)}, nil
}

// proxyReply is an answer to a request.
type proxyReply struct {
	status int
	body   io.Reader // ends with the connection
}

// ask sends a request and returns the answer to it. The target is that of the first line.
func (c proxyClient) ask(method, target string, headers []string) (proxyReply, error) {
	text := method + " " + target + " HTTP/1.1\r\nHost: proxy.example\r\n"
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	if _, err := io.WriteString(c.Conn, text+"\r\n"); err != nil {
		return proxyReply{}, err
	}
	answer, err := http.ReadResponse(c.Reader, &http.Request{Method: method}) //nolint:bodyclose // it ends with the connection
	if err != nil {
		return proxyReply{}, err
	}
	return proxyReply{answer.StatusCode, answer.Body}, nil
}

// proxyRequests are the methods and targets of requests to a proxy: those of each route that
// another command of this program serves, and those that ask for another server. victim
// is the address of another server.
func proxyRequests(t *testing.T, victim string) (all [][2]string) {
	t.Helper()
	text, err := os.ReadFile("../../../../internal/program/sidecar/openapi.json")
	var served struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := errors.Join(err, json.Unmarshal(text, &served)); err != nil {
		t.Fatal(err)
	}
	for path, methods := range served.Paths {
		for method := range methods {
			all = append(all, [2]string{strings.ToUpper(method), path})
		}
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		all = append(all, [2]string{method, "/"}, [2]string{method, "http://" + victim + "/"}, [2]string{method, "//" + victim + "/"})
	}
	return append(all, [2]string{"OPTIONS", "*"}, [2]string{"CONNECT", victim}, [2]string{"GET", "/debug/pprof/"}, [2]string{"GET", "/../../etc/passwd"})
}

// openProxy starts a proxy that other machines reach, and returns its port.
func (p place) openProxy(t *testing.T, args ...string) (proxy *process, port string) {
	t.Helper()
	proxy, address := p.startProxy(t, append([]string{"--listen", "0.0.0.0:0"}, args...)...)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return proxy, port
}

// A proxy has no routes and knows no users: each request of each client goes to the
// program of the leader, which decides. The leader gets the address of the client.
func TestEveryRequestThroughProxyAsEverybody(t *testing.T) {
	t.Parallel()
	other := otherMachine(t)
	program := httptest.NewUnstartedServer(http.HandlerFunc(serveAsLeader))
	program.Config.DisableGeneralOptionsHandler = true // the program answers "OPTIONS *" too
	program.Start()
	defer program.Close()
	victim := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the proxy sent %s %s to another server than the leader", r.Method, r.RequestURI)
	}))
	defer victim.Close()
	_, leaderPort, _ := net.SplitHostPort(program.Listener.Addr().String())
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	_, port := place.openProxy(t, "--http", "--wait", "1s")
	type caller struct {
		from    string
		headers []string
		status  int
		seen    map[string]string // what the leader sees
	}
	const forged = "203.0.113.9"
	callers := map[string]caller{
		"a client of this machine":    {from: thisMachine, status: answeredByLeader, seen: map[string]string{"X-Forwarded-For": thisMachine}},
		"a client of another machine": {from: other, status: answeredByLeader, seen: map[string]string{"X-Forwarded-For": other}},
		"a client with a token": {other, []string{"Authorization", "Bearer of-the-leader", "Cookie", "a=b"}, answeredByLeader,
			map[string]string{"Authorization": "Bearer of-the-leader", "Cookie": "a=b"}},
		"a client with a forged address": {other, []string{"X-Forwarded-For", forged, "X-Forwarded-Host", "forged", "X-Forwarded-Proto", "forged", "Forwarded", "host=forged"},
			answeredByLeader, map[string]string{"X-Forwarded-For": forged + ", " + other, "X-Forwarded-Proto": "http", "Forwarded": ""}},
		"a client that wants no address to be added": {other, []string{"Connection", "X-Forwarded-For, X-Forwarded-Host"}, answeredByLeader,
			map[string]string{"X-Forwarded-For": other}},
		"a client with the header of a proxy": {other, []string{leaderhttp.ForwardedHeader, "another"}, http.StatusLoopDetected, nil},
	}
	try := func(name string, c caller, method, target string) {
		t.Helper()
		conn, err := connectFrom(c.from, port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answer, err := conn.ask(method, target, c.headers)
		if err != nil {
			t.Errorf("%s: %s %s: %v", name, method, target, err)
			return
		}
		if answer.status != c.status {
			t.Errorf("%s: %s %s is answered with %d; the row says %d", name, method, target, answer.status, c.status)
			return
		}
		if c.seen == nil || method == http.MethodHead || method == http.MethodConnect {
			return
		}
		seen := http.Header{}
		if err := json.NewDecoder(answer.body).Decode(&seen); err != nil {
			t.Errorf("%s: %s %s: the answer of the leader: %v", name, method, target, err)
		}
		for header, want := range c.seen {
			if got := strings.Join(seen[header], ", "); got != want {
				t.Errorf("%s: %s %s: the leader sees the header %s: %q, want %q", name, method, target, header, got, want)
			}
		}
		for header, values := range seen {
			if slices.Contains(values, "forged") {
				t.Errorf("%s: %s %s: the leader sees the header %s of the client", name, method, target, header)
			}
		}
	}
	for name, c := range callers {
		c.seen = nil
		if c.status == answeredByLeader {
			c.status = http.StatusServiceUnavailable
		}
		try("without a leader, "+name, c, http.MethodGet, "/")
	}
	place.run(t, "--role", "billing", "--address", thisMachine, "--http-port", leaderPort).await("acquired")
	eventually(t, "the proxy knows the leader", func() bool {
		conn, err := connectFrom(thisMachine, port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answer, err := conn.ask(http.MethodGet, "/", nil)
		return err == nil && answer.status == answeredByLeader
	})
	for name, c := range callers {
		for _, r := range proxyRequests(t, victim.Listener.Addr().String()) {
			try(name, c, r[0], r[1])
		}
	}
}
