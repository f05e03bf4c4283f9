// Package webhook publishes the messages of an outbox by HTTP: as CloudEvents
// 1.0, signed with HMAC-SHA256 as Standard Webhooks has it, so that receivers in
// any language find a library for both. [Verify] is for receivers in Go.
//
// A response of 200 to 299 acknowledges a request. What else happens is
//
//   - poison, an event that can never be sent: 400, 413, 415 and 422, and events
//     larger than MaxBody;
//   - an attempt that failed: 402, 409 and other 4xx that are not listed here;
//   - an outage, waited for without end: no response in time, 5xx, 429, 408, 425,
//     a redirect, and responses that speak of the sender rather than the event
//     (401, 403, 404, 405, 407 and 410), until somebody puts that right.
//
// A Retry-After with a 429 or 503 is honored.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

// Publisher sends messages to one address. It is safe for concurrent use, and
// keeps connections open between batches.
type Publisher struct {
	config  Config
	address *url.URL
	client  *http.Client
}

var (
	_ outbox.Publisher     = (*Publisher)(nil)
	_ outbox.ModePreferrer = (*Publisher)(nil)
)

// New makes a publisher, which sends nothing yet. It returns an error that
// matches tenure.ErrInvalidConfig if the configuration cannot be used.
func New(config Config) (*Publisher, error) {
	config, address, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config.TLS.Clone(),
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 4,
	}
	client := &http.Client{Transport: transport, Timeout: config.Timeout, CheckRedirect: redirects(config.MaxRedirects)}
	return &Publisher{config: config, address: address, client: client}, nil
}

// redirects follows a number of redirects that keep the method and are no less
// safe.
func redirects(most int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) > most || next.Method != http.MethodPost || via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

// Name implements [outbox.Publisher].
func (p *Publisher) Name() string { return p.config.Name }

// PreferredMode implements [outbox.ModePreferrer].
func (p *Publisher) PreferredMode() outbox.Mode {
	if p.config.Format == Batched {
		return outbox.Batch
	}
	return outbox.Individual
}

// Close closes the connections that are kept open. Nothing must be published
// then.
func (p *Publisher) Close() { p.client.CloseIdleConnections() }

// Publish implements [outbox.Publisher].
func (p *Publisher) Publish(ctx context.Context, messages []outbox.Message) (int, error) {
	for sent := 0; sent < len(messages); {
		body, count, err := p.encode(messages[sent:])
		if err == nil {
			err = p.post(ctx, messages[sent:sent+count], body)
		}
		if err != nil {
			return sent, err
		}
		sent += count
	}
	return len(messages), nil
}

// encode makes the body of a request of as many messages as fit.
func (p *Publisher) encode(messages []outbox.Message) (body []byte, count int, err error) {
	first := newEvent(p.config.Source, messages[0])
	switch p.config.Format {
	case Structured:
		body, err = json.Marshal(first)
	case Binary:
		body = first.Data
	default:
		return p.encodeBatch(messages)
	}
	if err == nil && len(body) > p.config.MaxBody {
		err = fmt.Errorf("it has %d bytes; at most %d are sent", len(body), p.config.MaxBody)
	}
	if err != nil {
		return nil, 0, poison(messages[0], err)
	}
	return body, 1, nil
}

func (p *Publisher) encodeBatch(messages []outbox.Message) (body []byte, count int, err error) {
	body = append(body, '[')
	for i, m := range messages {
		event, err := json.Marshal(newEvent(p.config.Source, m))
		if err == nil && len(event)+len("[]") > p.config.MaxBody {
			err = fmt.Errorf("it has %d bytes; at most %d are sent", len(event), p.config.MaxBody)
		}
		switch {
		case i == 0 && err != nil:
			return nil, 0, poison(m, err)
		case err != nil || len(body)+len(event)+len(",]") > p.config.MaxBody && i > 0:
			return append(body, ']'), i, nil // what does not fit is the next request's
		case i > 0:
			body = append(body, ',')
		}
		body = append(body, event...)
	}
	return append(body, ']'), len(messages), nil
}

func poison(m outbox.Message, err error) error {
	return fmt.Errorf("%w: message %v: %w", processor.ErrPoison, m.ID, err)
}

// post sends one request.
func (p *Publisher) post(ctx context.Context, messages []outbox.Message, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("webhook %s: the request could not be made", p.config.Name) // the reason would show the URL
	}
	for name, values := range p.config.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	switch p.config.Format {
	case Binary:
		newEvent(p.config.Source, messages[0]).setHeaders(request.Header)
	case Structured:
		request.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
	default:
		request.Header.Set("Content-Type", "application/cloudevents-batch+json; charset=UTF-8")
	}
	sign(request.Header, requestID(messages), time.Now(), body, p.config.Secrets)
	response, err := p.client.Do(request)
	if err != nil {
		return p.unreachable(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	return p.judge(response)
}

// requestID is the same for the same messages.
func requestID(messages []outbox.Message) string {
	if len(messages) == 1 {
		return messages[0].ID.String()
	}
	var ids []byte
	for _, m := range messages {
		ids = append(ids, m.ID[:]...)
	}
	return uuid.NewSHA1(messages[0].ID, ids).String()
}
