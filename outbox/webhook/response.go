package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/exactly-one/tenure/processor"
)

// How many bytes of a response are read, to reuse its connection, and how many of them
// errors show.
const (
	maxRead  = 64 << 10
	maxShown = 200
)

// displayURL returns the address without possibly secret parts.
func (p *Publisher) displayURL() string { return redactedURL(p.address) }

func redactedURL(address *url.URL) string {
	return (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}).String()
}

// requestError returns the error for a request without a response.
func (p *Publisher) requestError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the outer one shows the URL
	}
	return fmt.Errorf("%w: webhook %s at %s: %w", processor.ErrUnavailable, p.config.Name, p.displayURL(), err)
}

// checkResponse reads and classifies a response.
func (p *Publisher) checkResponse(response *http.Response) error {
	var body []byte
	var err error
	code := response.StatusCode
	if code != http.StatusSwitchingProtocols { // it has no end, and the client has no more deadline for it
		body, err = io.ReadAll(io.LimitReader(response.Body, maxRead))
	}
	if code >= 200 && code < 300 {
		return nil // even if the body could not be read
	}
	answer := fmt.Sprintf("webhook %s at %s responded %d", p.config.Name, p.displayURL(), code)
	if target, err := response.Location(); err == nil {
		answer += " to " + redactedURL(target)
	} else if text := body[:min(len(body), maxShown)]; len(text) > 0 {
		answer += fmt.Sprintf(": %q", text)
	}
	failure := errors.New(answer)
	if err != nil {
		failure = fmt.Errorf("%w; reading the response: %w", failure, err)
	}
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if delay, ok := retryAfter(response.Header.Get("Retry-After"), time.Now()); ok {
			return &processor.RetryAfterError{Delay: min(delay, p.config.MaxRetryAfter), Err: failure}
		}
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %w", processor.ErrPoison, failure)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusGone, http.StatusRequestTimeout, http.StatusTooEarly:
	default:
		if code >= 400 && code < 500 {
			return failure
		}
	}
	return fmt.Errorf("%w: %w", processor.ErrUnavailable, failure)
}

// retryAfter parses a Retry-After header: seconds or a date.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	const longest = 1 << 31 // seconds, well below the limit of a Duration
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), longest)) * time.Second, seconds >= 0
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
