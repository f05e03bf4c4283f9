package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/settings"
	"github.com/exactly-one/tenure/internal/testkit"
)

// childEcho is the first word of a child that serves an address, records what it
// receives in a file, and sends it back: lines, or with a further word the bodies of
// HTTP requests.
const childEcho = "echo"

func echoMain(address, file string, overHTTP bool) int {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return exitOf(err)
	}
	record, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return exitOf(err)
	}
	echo := func(text string) string {
		fmt.Fprintf(record, "%s %s %s\n", text, os.Getenv(settings.TermVariable), os.Getenv(settings.NodeNameVariable))
		return text
	}
	if overHTTP {
		return exitOf(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, echo(string(body)))
		})))
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return exitOf(err)
		}
		go func() {
			defer conn.Close()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				fmt.Fprintln(conn, echo(lines.Text()))
			}
		}()
	}
}

// freePort returns a port that no program uses.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// startProxy starts a proxy and returns its address.
func (p place) startProxy(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	return p.proxyTo(t, "billing", args...)
}

func (p place) proxyTo(t *testing.T, role string, args ...string) (*process, string) {
	t.Helper()
	proxy := launch(t, p.with(append([]string{"proxy", "--role", role, "--listen", "127.0.0.1:0", "-o", "json"}, args...)...)...)
	line, _ := proxy.line()
	var listening struct{ Address string }
	if err := json.Unmarshal([]byte(line), &listening); err != nil {
		t.Fatalf("%v in %q; standard error:\n%s", err, line, proxy.log())
	}
	return proxy, listening.Address
}

// echoClient sends numbers through a proxy, and reports whether one came back.
type echoClient struct {
	address string
	http    *http.Client // nil for TCP
	conn    net.Conn
	reader  *bufio.Reader
}

func (c *echoClient) send(number string) bool {
	if c.http != nil {
		response, err := c.http.Post("http://"+c.address, "text/plain", strings.NewReader(number))
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return err == nil && response.StatusCode == http.StatusOK && string(body) == number
	}
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return false
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	_, err := fmt.Fprintln(c.conn, number)
	line := ""
	if err == nil {
		line, err = c.reader.ReadString('\n')
	}
	if err != nil || line != number+"\n" {
		c.conn.Close()
		c.conn = nil
		return false
	}
	return true
}

// The leader is killed twice under load. Everything goes to the present leader, none
// is sent twice, and each connection loses at most what was in flight.
func TestProxyFollowsKilledLeaders(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	t.Run("TCP", func(t *testing.T) { testProxyFollows(t, false) })
	t.Run("HTTP", func(t *testing.T) { testProxyFollows(t, true) })
}

func testProxyFollows(t *testing.T, overHTTP bool) {
	const clients, kills = 4, 2
	place, file := newPlace(t), filepath.Join(t.TempDir(), "received")
	invoke(t, place.with("acquire", "--role", "other")...).want(t, console.ExitDone) // makes the schema
	candidates := map[string]*process{}
	port := freePort(t)
	for name, host := range map[string]string{"one": "127.0.0.1", "two": "127.0.0.2", "three": "127.0.0.3"} {
		words := []string{"--", os.Args[0], asChild, childEcho, fmt.Sprintf("%s:%d", host, port), file}
		if overHTTP {
			words = append(words, "http")
		}
		candidates[name] = launch(t, append(place.with("run", "--role", "billing", "--name", name, "--address", host,
			"--http-port", strconv.Itoa(port)), words...)...)
	}
	args := []string{"--to-port", strconv.Itoa(port)}
	if overHTTP {
		args = []string{"--http"}
	}
	_, address := place.startProxy(t, args...)
	var (
		load     sync.WaitGroup
		number   atomic.Int64
		received atomic.Int64
		lost     [clients]int
		stop     = make(chan struct{})
	)
	for i := range clients {
		client := echoClient{address: address}
		if overHTTP {
			client.http = &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
		}
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if client.send(strconv.FormatInt(number.Add(1), 10)) {
					received.Add(1)
				} else {
					lost[i]++
				}
			}
		})
	}
	await := func(more int64) {
		t.Helper()
		wanted := received.Load() + more
		testkit.Await(t, "requests are answered", func() bool { return received.Load() >= wanted })
	}
	for range kills {
		await(100)
		candidates[lastNode(t, file)].signal(syscall.SIGKILL)
		await(100)
	}
	close(stop)
	load.Wait()
	for i, n := range lost {
		if n > kills {
			t.Errorf("client %d lost %d requests in %d kills, want at most one each time", i, n, kills)
		}
	}
	checkReceived(t, file)
}

// lastNode returns the node that received the last request.
func lastNode(t *testing.T, file string) string {
	t.Helper()
	lines := receivedLines(t, file)
	return lines[len(lines)-1][2]
}

// receivedLines returns the number, the term and the node of each request.
func receivedLines(t *testing.T, file string) (lines [][]string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if strings.HasSuffix(line, "\n") {
			lines = append(lines, strings.Fields(line))
		}
	}
	return lines
}

// checkReceived fails if a request was received twice, or after one of a later term.
func checkReceived(t *testing.T, file string) {
	t.Helper()
	seen, last := map[string]bool{}, int64(0)
	for _, line := range receivedLines(t, file) {
		term, err := strconv.ParseInt(line[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if seen[line[0]] {
			t.Errorf("request %s was received twice", line[0])
		}
		if term < last {
			t.Errorf("request %s was received under term %d, after term %d had begun", line[0], term, last)
		}
		seen[line[0]], last = true, term
	}
}

// Connections are reset when the term ends, and a new one waits for the next leader.
func TestProxyCutsConnectionsWhenTermEnds(t *testing.T) {
	t.Parallel()
	place, port := newPlace(t), freePort(t)
	server, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	one := place.run(t, "--role", "billing", "--name", "one", "--address", "127.0.0.1")
	one.await("acquired")
	proxy, address := place.startProxy(t, "--to-port", strconv.Itoa(port), "--wait", "1h")
	awaitConn := func() net.Conn {
		t.Helper()
		return testkit.Receive(t, accepted, patience, "the proxy does not connect to the leader")
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	first := dial()
	defer awaitConn().Close()
	one.signal(syscall.SIGTERM)
	if n, err := first.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v; want a connection that was reset", n, err)
	}
	second := dial()
	place.run(t, "--role", "billing", "--name", "two", "--address", "127.0.0.1").await("acquired")
	next := awaitConn()
	defer next.Close()
	if _, err := next.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Read(make([]byte, 1)); err != nil {
		t.Errorf("the connection that waited for the next leader: %v", err)
	}
	proxy.signal(syscall.SIGTERM)
	next.Close()
	second.Close()
	if code := proxy.exit(); code != console.ExitDone {
		t.Errorf("exit code %d, want %d", code, console.ExitDone)
	}
}

func TestProxyBoundsConnections(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "other").await("acquired")
	_, address := place.startProxy(t, "--to-port", "9", "--max-connections", "1", "--wait", "1h")
	first, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := net.Dial("tcp", address)
	if err == nil { // unless it was reset before Dial had seen that it was accepted
		defer second.Close()
		_ = second.SetDeadline(time.Now().Add(patience))
		_, err = second.Read(make([]byte, 1))
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading from the second connection: %v; want that it was closed", err)
	}
}

// A leader whose program refuses connections costs each client the wait. The connection is
// then reset, and the proxy can end.
func TestProxyGivesUpAfterTheWait(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--address", "127.0.0.1").await("acquired")
	proxy, address := place.startProxy(t, "--to-port", strconv.Itoa(freePort(t)), "--wait", "50ms")
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(patience))
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading: %v; want that the connection was reset", err)
	}
	proxy.signal(syscall.SIGTERM)
	if code := proxy.exit(); code != console.ExitDone {
		t.Errorf("exit code %d, want %d", code, console.ExitDone)
	}
}

func TestProxyRejectsBadInput(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	on := func(args ...string) []string { return place.with(append([]string{"proxy"}, args...)...) }
	for _, test := range []struct {
		args []string
		want string
	}{
		{on("--listen", ":0", "--to-port", "1"), "no role is named"},
		{on("--role", "a", "--role", "b", "--listen", ":0", "--to-port", "1"), "forwards to the leader of one"},
		{on("--role", "a", "--to-port", "1"), "use --listen"},
		{on("--role", "a", "--listen", ":0"), "use --to-port"},
		{on("--role", "a", "--listen", ":0", "--to-port", "65536"), "between 0 and 65535"},
		{on("--role", "a", "--listen", ":0", "--to-port", "1", "--max-connections", "0"), "at least 1"},
		{on("--role", "a", "--listen", ":0", "--to-port", "1", "--max-per-address", "0"), "--max-per-address is 0"},
	} {
		got := invoke(t, test.args...).want(t, console.ExitUsage)
		if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: %q, want %s", test.args, got.stderr, test.want)
		}
	}
}
