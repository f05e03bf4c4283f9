// Package webhook publishes the messages of an outbox over HTTP, as CloudEvents 1.0,
// signed with HMAC-SHA256 according to Standard Webhooks. Many languages have libraries
// for both. Receivers in Go use [Verify].
//
// A response of 200 to 299 acknowledges a request. Everything else is
//
//   - poison, an event that can never be sent: 400, 413, 415 and 422, and events
//     larger than MaxBody;
//   - a failed attempt: 402, 409 and other 4xx that are not listed here;
//   - an outage, which is retried until it ends: no response in time, 5xx, 429, 408,
//     425, a redirect, and responses that concern the sender instead of the event
//     (401, 403, 404, 405, 407 and 410).
//
// The publisher honors a Retry-After with a 429 or 503.
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

// Publisher sends messages to one URL. It is safe for concurrent use and keeps
// connections open between batches.
type Publisher struct {
	config  Config
	address *url.URL
	client  *http.Client
}

var (
	_ outbox.Publisher     = (*Publisher)(nil)
	_ outbox.ModePreferrer = (*Publisher)(nil)
)

// New returns a Publisher. It does not connect. An error matches tenure.ErrInvalidConfig.
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
	client := &http.Client{Transport: transport, Timeout: config.Timeout, CheckRedirect: redirectPolicy(config.MaxRedirects)}
	return &Publisher{config: config, address: address, client: client}, nil
}

// redirectPolicy follows at most limit redirects, with the same method and without leaving
// https.
func redirectPolicy(limit int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) > limit || next.Method != http.MethodPost || via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
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

// Close closes idle connections. Call it when no Publish is in progress.
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

// encode returns the body of a request with the first count messages, as many as fit.
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
		err = fmt.Errorf("it has %d bytes; the limit is %d", len(body), p.config.MaxBody)
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
			err = fmt.Errorf("it has %d bytes; the limit is %d", len(event), p.config.MaxBody)
		}
		switch {
		case i == 0 && err != nil:
			return nil, 0, poison(m, err)
		case err != nil || len(body)+len(event)+len(",]") > p.config.MaxBody && i > 0:
			return append(body, ']'), i, nil // the next request begins with this message
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
		return fmt.Errorf("webhook %s: cannot create the request", p.config.Name) // the cause would contain the URL
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
		return p.requestError(err)
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	return p.checkResponse(response)
}

// requestID returns the id of a request. It is the same for the same messages.
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
