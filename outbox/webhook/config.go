package webhook

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/exactly-one/tenure"
)

// Format is how messages become requests.
type Format string

// The formats, as CloudEvents 1.0 calls them.
const (
	// Batched sends many messages in a request, as
	// application/cloudevents-batch+json.
	Batched Format = "batched"
	// Structured sends one message in a request, as application/cloudevents+json.
	Structured Format = "structured"
	// Binary sends the data of one message in a request, and what the message
	// carries beside it in headers. Of the headers only the id is signed: where
	// others could change a request on its way, use another format.
	Binary Format = "binary"
)

// Config configures a publisher. Name, URL and Source must be set.
type Config struct {
	Name string // as of outbox.Publisher
	// URL is where requests go, by http or https. A user and a password in it
	// are sent as basic authentication, and do not appear in errors; nor does
	// the query.
	URL string
	// Source says in the events where they come from: a URI, or a part of one
	// such as "/shop/orders".
	Source string
	// Secrets sign every request, each of them: give the next one and the last
	// while receivers change over. Without any, requests are not signed.
	Secrets []Secret
	// Format is Batched by default.
	Format Format
	// Header is sent with every request.
	Header http.Header
	// Timeout bounds one request, from the connection to the end of the
	// response. Default 10 s.
	Timeout time.Duration
	// TLS configures connections to https. Default the system's certificates.
	TLS *tls.Config
	// MaxBody is the most bytes in the body of a request: a batch is sent in as
	// many requests as that takes, and a single message that is larger can never
	// be sent. Default 2 MiB.
	MaxBody int
	// MaxRetryAfter is the longest that a receiver's Retry-After is believed.
	// Default 10 min.
	MaxRetryAfter time.Duration
	// MaxRedirects is how many redirects are followed. Only those that keep
	// method and body (307 and 308) are, and none from https to http. Default 0:
	// a redirect is an outage, whose message names the place.
	MaxRedirects int
}

// withDefaults returns a configuration that is complete and checked, and its
// address.
func (c Config) withDefaults() (Config, *url.URL, error) {
	invalid := func(format string, args ...any) (Config, *url.URL, error) {
		return Config{}, nil, fmt.Errorf("%w: the webhook %s: %s", tenure.ErrInvalidConfig, c.Name, fmt.Sprintf(format, args...))
	}
	c.Header = maps.Clone(c.Header)
	if c.Format == "" {
		c.Format = Batched
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.MaxBody == 0 {
		c.MaxBody = 2 << 20
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = 10 * time.Minute
	}
	address, err := url.Parse(c.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return invalid("its URL must be absolute, with http or https")
	}
	if _, err := url.Parse(c.Source); err != nil || c.Source == "" {
		return invalid("its source %q must be a URI, or a part of one such as /shop/orders", c.Source)
	}
	for _, secret := range c.Secrets {
		if len(secret.key) < minSecret {
			return invalid("a secret is empty: make it with ParseSecret or NewSecret")
		}
	}
	switch {
	case c.Name == "":
		return invalid("it has no name")
	case c.Format != Batched && c.Format != Structured && c.Format != Binary:
		return invalid("its format is %q; there are %q, %q and %q", c.Format, Batched, Structured, Binary)
	case c.Timeout < 0 || c.MaxBody < 0 || c.MaxRetryAfter < 0 || c.MaxRedirects < 0:
		return invalid("times and limits must not be negative")
	}
	return c, address, nil
}
