//go:build linux

package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/outbox/webhook"
)

// receiver receives the webhooks of all nodes.
type receiver struct {
	bed    *bed
	server *http.Server
	url    string
	down   atomic.Bool
	slow   atomic.Bool
}

func startReceiver(b *bed) (*receiver, error) {
	host := sandbox.Host
	if b.network != nil {
		host = b.network.Host(0)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	r := &receiver{bed: b, url: "http://" + listener.Addr().String()}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // until it is closed
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() } // no client waits for its answers

// ServeHTTP records the messages of a request, when they arrive.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.down.Load() {
		http.Error(w, "the receiver is down", http.StatusServiceUnavailable)
		return
	}
	var events []webhook.Event
	if err := json.NewDecoder(request.Body).Decode(&events); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable) // the sender was cut off
		return
	}
	r.record(events)
	if r.slow.Load() {
		select {
		case <-time.After(2 * publishTimeout):
		case <-request.Context().Done():
		}
	}
}

func (r *receiver) record(events []webhook.Event) {
	r.bed.mu.Lock()
	defer r.bed.mu.Unlock()
	for _, event := range events {
		var p payment
		term, err := strconv.ParseInt(event.Term, 10, 64)
		if json.Unmarshal(event.Data, &p) != nil || err != nil {
			p.ID = "with the content " + string(event.Data)
		}
		r.bed.history.Deliveries = append(r.bed.history.Deliveries, record.Delivery{ID: p.ID, Term: term, At: record.Now()})
	}
}
