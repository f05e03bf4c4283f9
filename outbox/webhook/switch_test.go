package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/exactly-one/tenure/outbox/webhook"
	"github.com/exactly-one/tenure/processor"
)

// A receiver that switches protocols, unasked, keeps the connection open and sends
// nothing: no deadline of the client ends a read of such a connection.
func TestSwitchedProtocolIsAnOutage(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		if _, err := http.ReadRequest(reader); err != nil {
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
		for err == nil {
			_, err = reader.Discard(1)
		}
	}()
	p, err := webhook.New(webhook.Config{Name: "w", Source: "/s", URL: "http://" + listener.Addr().String(), Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	result := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go func() {
		_, err := p.Publish(ctx, messages(1))
		result <- err
	}()
	select {
	case err := <-result:
		if !errors.Is(err, processor.ErrUnavailable) {
			t.Errorf("%v; want an outage", err)
		}
		<-closed // the publisher closes the connection
	case <-time.After(5 * time.Second):
		t.Error("Publish does not return")
	}
}
