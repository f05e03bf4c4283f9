package webhook

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure"
)

// Format is the form of the requests.
type Format string

// The formats, with the names of CloudEvents 1.0.
const (
	// Batched sends several messages in each request, as
	// application/cloudevents-batch+json.
	Batched Format = "batched"
	// Structured sends one message in each request, as application/cloudevents+json.
	Structured Format = "structured"
	// Binary sends the data of one message in each request, and its attributes in
	// headers. Of the headers only the id is signed: if an attacker could change
	// requests in transit, use another format.
	Binary Format = "binary"
)

// Config configures a publisher. Name, URL and Source must be set.
type Config struct {
	Name string // see outbox.Publisher
	// URL receives the requests, over http or https. A user and password in it are
	// sent as basic authentication. They and the query do not appear in errors.
	URL string
	// Source is the source attribute of the events: a URI, or a relative one such as
	// "/shop/orders".
	Source string
	// Secrets sign every request. While receivers change to a new secret, set the old
	// and the new one. Without secrets, requests are not signed.
	Secrets []Secret
	// Format is the form of the requests. Default: Batched.
	Format Format
	// Header is sent with every request.
	Header http.Header
	// Timeout bounds one request, from the connection to the end of the response.
	// Default: 10 s.
	Timeout time.Duration
	// TLS configures https. Default: the certificates of the system.
	TLS *tls.Config
	// MaxBody is the size limit of a request body in bytes. A larger batch is divided
	// into several requests; a larger message is poison. Default: 2 MiB.
	MaxBody int
	// MaxRetryAfter is the upper limit of a receiver's Retry-After. Default: 10 min.
	MaxRetryAfter time.Duration
	// MaxRedirects is how many redirects are followed, only those that keep method and
	// body (307 and 308) and none from https to http. Any other redirect is an outage,
	// and the error contains its target. Default: 0.
	MaxRedirects int
}

// withDefaults returns the checked configuration with defaults, and its parsed URL.
func (c Config) withDefaults() (Config, *url.URL, error) {
	c.Header = maps.Clone(c.Header)
	c.Format = cmp.Or(c.Format, Batched)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.MaxBody = cmp.Or(c.MaxBody, 2<<20)
	c.MaxRetryAfter = cmp.Or(c.MaxRetryAfter, 10*time.Minute)
	address, err := c.check()
	if err != nil {
		return Config{}, nil, fmt.Errorf("%w: the webhook %s: %w", tenure.ErrInvalidConfig, c.Name, err)
	}
	return c, address, nil
}

// check checks a configuration with defaults, and returns its parsed URL.
func (c Config) check() (*url.URL, error) {
	invalid := func(format string, args ...any) (*url.URL, error) { return nil, fmt.Errorf(format, args...) }
	address, err := url.Parse(c.URL)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return invalid("its URL must be absolute, with http or https")
	}
	// The parser ends the password at the last @ before a slash. Errors show the path.
	if _, hasPassword := address.User.Password(); hasPassword && strings.Contains(redactedURL(address)+address.RawQuery+address.Fragment, "@") {
		return invalid("its URL has an @ behind the host: escape the password (@ is written %%40, / %%2F and # %%23)")
	}
	if _, err := url.Parse(c.Source); err != nil || c.Source == "" {
		return invalid("its source %q must be a URI, or a relative one such as /shop/orders", c.Source)
	}
	for _, secret := range c.Secrets {
		if len(secret.key) < minSecretBytes {
			return invalid("a secret is empty: create it with ParseSecret or NewSecret")
		}
	}
	switch {
	case c.Name == "":
		return invalid("it has no name")
	case !slices.Contains([]Format{Batched, Structured, Binary}, c.Format):
		return invalid("its format is %q; it must be %q, %q or %q", c.Format, Batched, Structured, Binary)
	case min(c.Timeout, c.MaxRetryAfter) < 0 || min(c.MaxBody, c.MaxRedirects) < 0:
		return invalid("times and limits must not be negative")
	}
	return address, nil
}
