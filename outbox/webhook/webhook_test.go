package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/outbox/webhook"
	"github.com/exactly-one/tenure/processor"
)

// message returns a message whose type must be encoded in a header.
func message(number int) outbox.Message {
	m := outboxtest.Messages(1_763_700_000_000, number, number)[0]
	m.Event.Type = "order placed: 100%\u00a0\"é\""
	return m
}

func messages(count int) []outbox.Message {
	all := make([]outbox.Message, count)
	for i := range all {
		all[i] = message(i + 1)
	}
	return all
}

// serve starts a receiver and returns a publisher that sends to it.
func serve(t testing.TB, config webhook.Config, handler http.HandlerFunc) (*webhook.Publisher, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	if config.URL == "" {
		config.URL = server.URL
	}
	config.Name, config.Source = "hook", "/shop"
	p, err := webhook.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, server
}

func TestFormatsEncodeMessages(t *testing.T) {
	t.Parallel()
	for format, requests := range map[webhook.Format]int{webhook.Batched: 1, webhook.Structured: 3, webhook.Binary: 3} {
		var got []webhook.Event
		served := 0
		p, _ := serve(t, webhook.Config{Format: format, Header: http.Header{"x-tenant": {"a"}}}, func(w http.ResponseWriter, r *http.Request) {
			served++
			body, _ := io.ReadAll(r.Body)
			events, err := decode(r, body)
			if err != nil || r.Method != http.MethodPost || r.Header.Get("X-Tenant") != "a" {
				t.Errorf("%s: %v, %s, %v", format, err, r.Method, r.Header)
			}
			got = append(got, events...)
			w.WriteHeader(http.StatusAccepted)
		})
		n, err := p.Publish(t.Context(), messages(3))
		if n != 3 || err != nil || served != requests || len(got) != 3 {
			t.Fatalf("%s: %d acknowledged, %v, %d requests, %d events", format, n, err, served, len(got))
		}
		for i, event := range got {
			m := message(i + 1)
			want := webhook.Event{
				SpecVersion: "1.0", ID: m.ID.String(), Source: "/shop", Type: m.Event.Type, Time: m.Event.OccurredAt,
				DataContentType: "application/json", Topic: "orders", Role: "outbox", Term: "1763700000000",
				Position: fmt.Sprintf("5:7:%d", i+1), Correlation: m.Event.Correlation.String(), Data: m.Event.Data,
			}
			if !reflect.DeepEqual(event, want) {
				t.Errorf("%s: arrived as %+v, want %+v", format, event, want)
			}
		}
	}
}

func TestResponsesAreClassified(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]error{
		200: nil, 204: nil, 400: processor.ErrPoison, 413: processor.ErrPoison, 415: processor.ErrPoison, 422: processor.ErrPoison,
		401: processor.ErrUnavailable, 404: processor.ErrUnavailable, 408: processor.ErrUnavailable, 429: processor.ErrUnavailable,
		500: processor.ErrUnavailable, 503: processor.ErrUnavailable, 302: processor.ErrUnavailable, 409: errAttempt, 402: errAttempt,
	} {
		served := 0
		p, server := serve(t, webhook.Config{Format: webhook.Structured}, func(w http.ResponseWriter, _ *http.Request) {
			if served++; served == 2 {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(code)
				if code != http.StatusNoContent {
					_, _ = io.WriteString(w, "because\n"+strings.Repeat("x", 1<<20))
				}
			}
		})
		n, err := p.Publish(t.Context(), messages(3))
		if want == nil {
			if n != 3 || err != nil {
				t.Errorf("%d: %d acknowledged, %v", code, n, err)
			}
			continue
		}
		if n != 1 || !errors.Is(classOf(err), want) {
			t.Errorf("%d: %d acknowledged, %v", code, n, err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, server.URL) || !strings.Contains(text, fmt.Sprint(code)) || len(text) > 500 {
			t.Errorf("%d: the error reads %q", code, text)
		}
	}
}

var errAttempt = errors.New("an attempt that failed")

func classOf(err error) error {
	switch {
	case errors.Is(err, processor.ErrPoison):
		return processor.ErrPoison
	case errors.Is(err, processor.ErrUnavailable):
		return processor.ErrUnavailable
	default:
		return errAttempt
	}
}

func TestRetryAfterDelaysTheRetry(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value       string
		limit, want time.Duration
	}{
		{"7", time.Minute, 7 * time.Second}, {"99999", time.Minute, time.Minute}, {"99999", 0, 10 * time.Minute},
	} {
		value, want := test.value, test.want
		p, _ := serve(t, webhook.Config{MaxRetryAfter: test.limit}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := p.Publish(t.Context(), messages(1))
		var asked *processor.RetryAfterError
		if !errors.As(err, &asked) || asked.Delay != want || !errors.Is(err, processor.ErrUnavailable) {
			t.Errorf("%s: %v, want a pause of %v", value, err, want)
		}
	}
}

func TestRedirectsAreLimited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		most, code, want int
	}{{0, 307, 0}, {1, 307, 1}, {1, 308, 1}, {1, 302, 0}} {
		arrived := 0
		p, _ := serve(t, webhook.Config{MaxRedirects: test.most}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/new" {
				http.Redirect(w, r, "/new", test.code)
				return
			}
			if body, _ := io.ReadAll(r.Body); len(body) > 0 && r.Method == http.MethodPost {
				arrived++
			}
		})
		n, err := p.Publish(t.Context(), messages(1))
		if n != test.want || arrived != test.want || test.want == 0 && (!errors.Is(err, processor.ErrUnavailable) || !strings.Contains(err.Error(), "/new")) {
			t.Errorf("%+v: %d acknowledged, %d arrived, %v", test, n, arrived, err)
		}
	}
}

// The publisher verifies the certificate and follows no redirect to http.
func TestTLSVerifiesTheReceiver(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(plain.Close)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
		}
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the handshake that fails
	server.StartTLS()
	t.Cleanup(server.Close)
	trusting := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	trusting.RootCAs.AddCert(server.Certificate())
	for _, test := range []struct {
		config *tls.Config
		path   string
		want   int
	}{{trusting, "", 1}, {nil, "", 0}, {trusting, "/away", 0}} {
		p, _ := serve(t, webhook.Config{URL: server.URL + test.path, TLS: test.config, MaxRedirects: 3}, nil)
		n, err := p.Publish(t.Context(), messages(1))
		if n != test.want || test.want == 0 && !errors.Is(err, processor.ErrUnavailable) {
			t.Errorf("%+v: %d acknowledged, %v", test, n, err)
		}
	}
}

// A batch is divided by size, and a message that fits in no request is poison.
func TestLargeBatchesAreSplit(t *testing.T) {
	t.Parallel()
	const limit = 2000
	all := messages(20)
	large := message(21)
	large.Event.Data = json.RawMessage(`"` + strings.Repeat("x", limit) + `"`)
	requests, events := 0, 0
	p, _ := serve(t, webhook.Config{MaxBody: limit}, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		found, err := decode(r, body)
		if err != nil || len(body) > limit {
			t.Errorf("%v, %d bytes", err, len(body))
		}
		requests++
		events += len(found)
	})
	n, err := p.Publish(t.Context(), append(all, large))
	if n != 20 || !errors.Is(err, processor.ErrPoison) || events != 20 || requests < 4 || requests > 10 {
		t.Errorf("%d acknowledged, %v, %d events in %d requests", n, err, events, requests)
	}
	large.Event.Data = json.RawMessage("{broken")
	if n, err := p.Publish(t.Context(), []outbox.Message{large}); n != 0 || !errors.Is(err, processor.ErrPoison) {
		t.Errorf("data that is no JSON: %d acknowledged, %v", n, err)
	}
}

// User, password and query of the URL are sent but do not appear in errors.
func TestErrorsHideSecretsOfTheURL(t *testing.T) {
	t.Parallel()
	var authorized atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		authorized.Store(ok && user == "robot" && password == "pass" && r.URL.RawQuery == "token=hidden")
		w.Header().Set("Location", "http://robot:pass@elsewhere/?token=hidden")
		w.WriteHeader(http.StatusFound)
	}))
	address := strings.Replace(server.URL, "http://", "http://robot:pass@", 1) + "/in?token=hidden"
	p, _ := serve(t, webhook.Config{URL: address}, nil)
	_, answered := p.Publish(t.Context(), messages(1))
	p.Close()
	server.Close()
	_, refused := p.Publish(t.Context(), messages(1))
	if !authorized.Load() {
		t.Error("the user, the password or the query were not sent")
	}
	_, invalid := webhook.New(webhook.Config{Name: "hook", URL: "ftp://robot:pass@%zz?token=hidden"})
	for _, err := range []error{answered, refused, invalid} {
		if text := fmt.Sprint(err); err == nil || strings.Contains(text, "pass") || strings.Contains(text, "robot") || strings.Contains(text, "hidden") {
			t.Errorf("the error reads %q", text)
		}
	}
}

// A request ends at the timeout, or earlier with its context.
func TestSilentReceiverTimesOut(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p, _ := serve(t, webhook.Config{Timeout: 50 * time.Millisecond}, func(http.ResponseWriter, *http.Request) { <-release })
	patient, _ := serve(t, webhook.Config{}, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the servers close
	if _, err := p.Publish(t.Context(), messages(1)); !errors.Is(err, processor.ErrUnavailable) {
		t.Errorf("after the timeout: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := patient.Publish(ctx, messages(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Without a setting, a request has 10 s.
func TestRequestHasTenSeconds(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	release := make(chan struct{})
	p, _ := serve(t, webhook.Config{}, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server closes
	began := time.Now()
	_, err := p.Publish(t.Context(), messages(1))
	if took := time.Since(began); took < 10*time.Second || took > 15*time.Second || !errors.Is(err, processor.ErrUnavailable) {
		t.Errorf("the request ended after %v (%v), want 10s (bound 15s)", took, err)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	p, _ := serve(t, webhook.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<10))
	})
	opened := 0
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			opened++
		}
	}}
	for range 5 {
		_, _ = p.Publish(httptrace.WithClientTrace(t.Context(), trace), messages(1)) // fails, as it must
	}
	if opened != 1 {
		t.Errorf("%d connections were opened", opened)
	}
}

func TestInvalidConfigsAreRejected(t *testing.T) {
	t.Parallel()
	for _, config := range []webhook.Config{
		{}, {URL: "/relative", Name: "x", Source: "/"}, {URL: "http://a", Source: "/"}, {URL: "http://a", Name: "x"},
		{URL: "http://a", Name: "x", Source: "/", Format: "xml"}, {URL: "http://a", Name: "x", Source: "/", Timeout: -1},
		{URL: "http://a", Name: "x", Source: "/", Secrets: make([]webhook.Secret, 1)},
	} {
		if _, err := webhook.New(config); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%+v: %v", config, err)
		}
	}
}
