// Package signon logs users of the dashboard in at a provider of OpenID Connect, by the
// authorization code flow with PKCE.
package signon

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/exactly-one/tenure/internal/program/secretfile"
	"github.com/exactly-one/tenure/server/dashboard"
)

// The bounds on the provider.
const (
	requestTimeout = 5 * time.Second  // for one request
	finishTimeout  = 15 * time.Second // for all requests of a login
	maxAnswer      = 1 << 20          // bytes
	maxLogins      = 8                // that finish at the same time
	maxSecret      = 4096             // bytes
)

// Provider is a provider of OpenID Connect. It is safe for concurrent use.
type Provider struct {
	config Config
	client *http.Client
	logins chan struct{}

	mu    sync.Mutex
	known *oidc.Provider    // nil until it has described itself
	open  map[string]*login // by the state of their flow
}

// New returns a provider, which need not answer yet. An error matches
// tenure.ErrInvalidConfig.
func New(config Config) (*Provider, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Provider{
		config: config, client: &http.Client{Timeout: requestTimeout, Transport: bounded{transport}}, logins: make(chan struct{}, maxLogins), open: map[string]*login{},
	}, nil
}

// bounded bounds the bodies of answers.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols { // its body has no end, and no timeout ends the read
		_ = response.Body.Close()
		return nil, errors.New("the provider switches protocols")
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}

// Close closes idle connections. A nil Provider has none.
func (p *Provider) Close() {
	if p != nil {
		p.client.CloseIdleConnections()
	}
}

// SignOn returns how the dashboard uses the provider.
func (p *Provider) SignOn() *dashboard.SignOn {
	return &dashboard.SignOn{Begin: p.begin, Finish: p.finish, Recheck: p.recheck, Secure: strings.HasPrefix(p.config.RedirectURL, "https://")}
}

// Check asks the provider to describe itself, within some seconds.
func (p *Provider) Check(ctx context.Context) error {
	_, err := p.discover(ctx)
	return err
}

// discover returns the provider as it describes itself. It asks again until it has
// answered once.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), requestTimeout)
	defer cancel()
	known, err := oidc.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read the configuration of the OpenID Connect provider %s: %w", p.config.Issuer, oneLine(err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
	return known, nil
}

// oneLine shortens an error with an answer of the provider in it.
func oneLine(err error) error {
	const most = 300
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) <= most && text == err.Error() {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:min(len(text), most)], ""))
}

// oauth returns the OAuth 2.0 client. It reads the secret anew: it can change.
func (p *Provider) oauth(known *oidc.Provider) (*oauth2.Config, error) {
	client := &oauth2.Config{
		ClientID: p.config.ClientID, Endpoint: known.Endpoint(), RedirectURL: p.config.RedirectURL,
		Scopes: append([]string{oidc.ScopeOpenID, "email", "profile"}, p.config.Scopes...),
	}
	if p.config.SecretFile == "" {
		client.Endpoint.AuthStyle = oauth2.AuthStyleInParams // of a public client
		return client, nil
	}
	secret, err := secretfile.Read(p.config.SecretFile, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("read the secret of the OpenID Connect client: %w", err)
	}
	client.ClientSecret = strings.TrimSpace(string(secret))
	return client, nil
}

// begin returns the address of the provider's login.
func (p *Provider) begin(ctx context.Context, flow dashboard.Flow) (string, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	client, err := p.oauth(known)
	if err != nil {
		return "", err
	}
	return client.AuthCodeURL(flow.State, oidc.Nonce(flow.Nonce), oauth2.S256ChallengeOption(flow.Verifier)), nil
}

// finish returns the user whom the provider has sent back.
func (p *Provider) finish(ctx context.Context, query url.Values, flow dashboard.Flow) (dashboard.User, error) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	select {
	case p.logins <- struct{}{}:
		defer func() { <-p.logins }()
	case <-ctx.Done():
		return dashboard.User{}, errors.New("too many logins finish at the same time")
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(flow.State)) != 1:
		return dashboard.User{}, errors.New("the answer has the state of another login")
	case query.Has("iss") && query.Get("iss") != p.config.Issuer: // RFC 9207
		return dashboard.User{}, errors.New("the answer is another provider's")
	case query.Has("error"):
		return dashboard.User{}, oneLine(fmt.Errorf("the provider refused the login: %q %q", query.Get("error"), query.Get("error_description")))
	}
	ctx = oidc.ClientContext(ctx, p.client)
	opened, err := p.exchange(ctx, query.Get("code"), flow)
	if err != nil {
		return dashboard.User{}, err
	}
	user, err := p.config.userOf(opened.found)
	if err == nil {
		p.keep(flow, opened)
	}
	return user, err
}

// exchange exchanges a code for a login with the claims about its user.
func (p *Provider) exchange(ctx context.Context, code string, flow dashboard.Flow) (*login, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	client, err := p.oauth(known)
	if err != nil {
		return nil, err
	}
	token, err := client.Exchange(ctx, code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return nil, fmt.Errorf("the provider does not accept the code: %w", oneLine(err))
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, errors.New("the provider sent no ID token")
	}
	id, err := known.Verifier(&oidc.Config{ClientID: p.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("the ID token is not valid: %w", oneLine(err))
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(flow.Nonce)) != 1 {
		return nil, errors.New("the ID token has the nonce of another login")
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, fmt.Errorf("the access token does not belong to the ID token: %w", err)
		}
	}
	opened := &login{began: time.Now(), token: token, found: claims{subject: id.Subject}}
	if err := opened.found.read(id, p.config.groupsClaim()); err != nil {
		return nil, err
	}
	return opened, p.describe(ctx, known, opened)
}

// describe completes the claims about a login's user from the provider's description, if
// there is one.
func (p *Provider) describe(ctx context.Context, known *oidc.Provider, opened *login) error {
	if known.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(opened.token))
	switch {
	case err != nil && opened.found.complete(p.config): // it cannot be asked later either
		return nil
	case err != nil:
		return fmt.Errorf("read the user from the provider: %w", oneLine(err))
	case info.Subject != opened.found.subject:
		return errors.New("the provider describes another user")
	}
	var described claims
	if err := described.read(info, p.config.groupsClaim()); err != nil {
		return err
	}
	opened.tellsEmail, opened.tellsGroups = described.email != "", len(described.groups) > 0
	return opened.found.read(info, p.config.groupsClaim())
}
