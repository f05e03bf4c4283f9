package signon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/exactly-one/tenure/server/dashboard"
)

// The bounds on the stored logins. They are the dashboard's own.
const (
	loginLife = 12 * time.Hour
	maxOpen   = 1000 // the oldest are removed
)

// login is a user's login at the provider. The dashboard checks a login again only after
// the last check has returned.
type login struct {
	began time.Time
	token *oauth2.Token
	found claims // at the login

	// The content of the provider's description of the user, beside the ID token.
	tellsEmail, tellsGroups bool
}

// keep keeps a login for later checks.
func (p *Provider) keep(flow dashboard.Flow, opened *login) {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := ""
	for state, l := range p.open {
		if time.Since(l.began) >= loginLife {
			delete(p.open, state)
		} else if oldest == "" || l.began.Before(p.open[oldest].began) {
			oldest = state
		}
	}
	if len(p.open) >= maxOpen {
		delete(p.open, oldest)
	}
	p.open[flow.State] = opened
}

// recheck asks the provider for the present access of a login's user. An error matches
// dashboard.ErrNoAccess if the provider no longer accepts the login's tokens, or if the
// user's addresses and groups give no access.
func (p *Provider) recheck(ctx context.Context, user dashboard.User, flow dashboard.Flow) (dashboard.User, error) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	p.mu.Lock()
	l := p.open[flow.State]
	p.mu.Unlock()
	if l == nil || !l.tellsEmail && !l.tellsGroups {
		return user, nil // the provider says nothing new
	}
	seen := &lastStatus{next: p.client.Transport}
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: p.client.Timeout, Transport: seen})
	known, err := p.discover(ctx)
	if err != nil {
		return user, err
	}
	client, err := p.oauth(known)
	if err != nil {
		return user, err
	}
	token, err := client.TokenSource(ctx, l.token).Token()
	if err != nil {
		return user, ended(fmt.Errorf("renew the login: %w", oneLine(err)), l.token.RefreshToken == "" || seen.refused())
	}
	l.token = token
	info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return user, ended(fmt.Errorf("read the user from the provider: %w", oneLine(err)), seen.refused())
	}
	if info.Subject != l.found.subject {
		return user, errors.New("the provider describes another user")
	}
	now := claims{subject: info.Subject}
	if err := now.read(info, p.config.groupsClaim()); err != nil {
		return user, err
	}
	if !l.tellsEmail {
		now.email = l.found.email
	}
	if !l.tellsGroups {
		now.groups = l.found.groups
	}
	return p.config.userOf(now)
}

// ended makes an error match dashboard.ErrNoAccess if the login is over.
func ended(err error, over bool) error {
	if over {
		return fmt.Errorf("%w: %w", dashboard.ErrNoAccess, err)
	}
	return err
}

// lastStatus remembers the status of the last answer: the errors of package oidc do not
// have it.
type lastStatus struct {
	next   http.RoundTripper
	status int
}

// RoundTrip implements http.RoundTripper.
func (s *lastStatus) RoundTrip(r *http.Request) (*http.Response, error) {
	s.status = 0
	response, err := s.next.RoundTrip(r)
	if err == nil {
		s.status = response.StatusCode
	}
	return response, err
}

// refused reports whether the provider refused a token: with 400 where tokens are renewed
// (RFC 6749, section 5.2), and with 401 where a user is described (RFC 6750, section 3.1).
func (s *lastStatus) refused() bool {
	return s.status == http.StatusBadRequest || s.status == http.StatusUnauthorized || s.status == http.StatusForbidden
}
