package notifiers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/program/notifier"
)

// endpoint is where requests of one notifier go.
type endpoint struct {
	name   string
	client *http.Client
	url    secret
}

// The maximum bytes of a response to read, for a reuse of its connection, and to show.
const (
	maxRead  = 64 << 10
	maxShown = 200
)

// RetryAfterError is a refusal with the time to try again.
type RetryAfterError struct {
	Delay time.Duration
	Err   error
}

func (e *RetryAfterError) Error() string { return e.Err.Error() }
func (e *RetryAfterError) Unwrap() error { return e.Err }

// RefusedError is a refusal of the content of a message: the same one would be refused
// again, and another one may be accepted.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// PartialError is why only some recipients got a message. Another attempt with it is for
// the others.
type PartialError struct{ Err error }

func (e *PartialError) Error() string { return e.Err.Error() }
func (e *PartialError) Unwrap() error { return e.Err }

// newClient makes a client that follows no redirects: they would take secrets to
// other places.
func newClient(config *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true,
			IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 2,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a body as JSON. Name the secrets in it: an error with the response must not
// contain them.
func (e endpoint) post(ctx context.Context, path string, body any, header http.Header, secrets ...string) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	return e.postBytes(ctx, path, encoded, header, secrets...)
}

func (e endpoint) postBytes(ctx context.Context, path string, body []byte, header http.Header, secrets ...string) error {
	text, err := e.url.read()
	if err != nil {
		return err
	}
	address, err := url.Parse(text)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return errors.New("its URL must begin with https:// or http://")
	}
	if notifier.CutPassword(address) {
		return errors.New("its URL has an @ behind the host: escape the password (@ is written %40, / %2F and # %23)")
	}
	if path != "" {
		address = address.JoinPath(path)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("its URL is not valid") // the reason would show it
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "tenure")
	response, err := e.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the outer one shows the URL
		}
		return fmt.Errorf("%s cannot be reached: %w", address.Host, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	return judge(response, address, append(secrets, secretParts(text, address)...))
}

// leastSecret is the length from which a part of a path may be a secret.
const leastSecret = 8

// secretParts are the parts of a URL to hide in a response: all of it, and each part a
// receiver may repeat alone. The longest come first.
func secretParts(text string, address *url.URL) []string {
	path := strings.Trim(address.Path, "/")
	parts := []string{text, path, address.RawQuery}
	if password, ok := address.User.Password(); ok {
		parts = append(parts, password)
	}
	for _, values := range address.Query() {
		parts = append(parts, values...)
	}
	for part := range strings.SplitSeq(path, "/") {
		if len(part) >= leastSecret {
			parts = append(parts, part)
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) })
	return parts
}

// judge reads a response. Any 2xx is an acknowledgment.
func judge(response *http.Response, address *url.URL, secrets []string) error {
	var body []byte
	if response.StatusCode != http.StatusSwitchingProtocols { // it has no end, and no context ends the read
		body, _ = io.ReadAll(io.LimitReader(response.Body, maxRead)) // it is shown as far as it came
	}
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	shown := string(body)
	for _, secret := range secrets {
		if secret != "" {
			shown = strings.ReplaceAll(shown, secret, "********")
		}
	}
	err := fmt.Errorf("%s answered %d", address.Host, response.StatusCode)
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		err = fmt.Errorf("%w: redirects are not followed: set the URL to the target", err)
	}
	if shown = shown[:min(len(shown), maxShown)]; shown != "" {
		err = fmt.Errorf("%w: %q", err, shown)
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if delay, ok := retryAfter(response.Header.Get("Retry-After"), time.Now()); ok {
			return &RetryAfterError{delay, err}
		}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return &RefusedError{err}
	}
	return err
}

// maxRetryAfter is the longest Retry-After to honor.
const maxRetryAfter = 10 * time.Minute

// retryAfter reads a Retry-After: seconds, or a date.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return min(time.Duration(max(seconds, 0))*time.Second, maxRetryAfter), seconds >= 0
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), maxRetryAfter), true
	}
	return 0, false
}
