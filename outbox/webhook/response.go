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

// The most bytes of a response that are read, so that its connection can be used
// again, and that are shown.
const (
	maxRead  = 64 << 10
	maxShown = 200
)

// place is the address as it may be shown: without what may be secret.
func (p *Publisher) place() string { return shown(p.address) }

func shown(address *url.URL) string {
	return (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}).String()
}

// unreachable is the error for a request without a response.
func (p *Publisher) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the outer one shows the URL
	}
	return fmt.Errorf("%w: webhook %s at %s: %w", processor.ErrUnavailable, p.config.Name, p.place(), err)
}

// judge reads a response.
func (p *Publisher) judge(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxRead))
	code := response.StatusCode
	if code >= 200 && code < 300 {
		return nil // whatever became of the body
	}
	answer := fmt.Sprintf("webhook %s at %s answered %d", p.config.Name, p.place(), code)
	if target, err := response.Location(); err == nil {
		answer += " to " + shown(target)
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

// retryAfter reads a Retry-After: seconds, or a date.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	const longest = 1 << 31 // seconds; a Duration holds more
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), longest)) * time.Second, seconds >= 0
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
