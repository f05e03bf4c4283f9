package sidecar

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// pipes is a network in memory: synchronous, without buffers, and in the time of
// a synctest bubble.
type pipes struct {
	accepting chan net.Conn
	closed    chan struct{}
	once      sync.Once
}

func newPipes() *pipes { return &pipes{accepting: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepting:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepting <- server:
		return client, nil
	case <-p.closed:
		return nil, errors.New("no server listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveOn serves a handler on a listener until the test ends, or stop is called.
func serveOn(t *testing.T, listener net.Listener, h *Handler, certificate *Certificate) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, h, certificate) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// serveInMemory serves a handler and returns a client for it, and the network.
func serveInMemory(t *testing.T, h *Handler) (client *http.Client, network *pipes, stop func()) {
	t.Helper()
	network = newPipes()
	stop = serveOn(t, network, h, nil)
	transport := &http.Transport{DialContext: network.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, network, stop
}

// message is one server-sent event.
type message struct{ id, kind, data string }

// reader reads a stream of server-sent events as a browser does.
type reader struct {
	lines *bufio.Reader
	last  string // the id of the last event
	pulse int    // comments seen
}

// next returns the next event, and io.EOF at the end of the stream.
func (r *reader) next() (message, error) {
	var m message
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			return m, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			r.last = value
		case name == "event":
			m.kind = value
		case name == "data":
			m.data = value
		case line == "\n" && m.data != "":
			m.id = r.last
			return m, nil
		case line[0] == ':':
			r.pulse++
		}
	}
}

// following is a client that follows the events over the wire.
type following struct {
	*reader
	body io.Closer
}

// follow begins to follow, after an event or from now on.
func follow(t *testing.T, client *http.Client, base, last string) *following {
	t.Helper()
	return followPath(t, client, base, "/v1/events", last)
}

// followPath is follow for another stream.
func followPath(t *testing.T, client *http.Client, base, path, last string) *following {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := client.Do(r) //nolint:bodyclose // close closes it
	if err != nil {
		t.Fatal(err)
	}
	f := &following{&reader{lines: bufio.NewReader(response.Body)}, response.Body}
	t.Cleanup(f.close)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("following: %s, %v", response.Status, response.Header)
	}
	f.expect(t, kindHello)
	return f
}

func (f *following) close() { _ = f.body.Close() } // the server notices

// expect returns the next event, which must be of a kind and as described.
func (f *following) expect(t *testing.T, kind string) message {
	t.Helper()
	m, err := f.next()
	if err != nil || m.kind != kind {
		t.Fatalf("the event is %+v (%v), want %s", m, err, kind)
	}
	schema := map[string]string{
		kindHello: "Hello", kindGap: "Gap", kindElection: "Event", kindLeader: "Change", kindDropped: "Last", kindEnd: "Last",
		kindGuard: "HeldGuard", kindStopping: "Last", kindEnded: "Last",
		kindJoined: "NodeChange", kindUpdated: "NodeChange", kindLeft: "NodeChange",
	}[kind]
	checkSchema(t, schema, m.data)
	return m
}
