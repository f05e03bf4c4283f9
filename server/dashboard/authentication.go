package dashboard

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Authentication configures how visitors authenticate. Several ways can be enabled at
// the same time. Without any, all visitors may view and none may act.
type Authentication struct {
	// Token returns the user of a token. Visitors enter it on the page, and programs send
	// it as Authorization: Bearer TOKEN. It is called for every request, from several
	// goroutines, and must compare in constant time, like the function of [Tokens]. When
	// a token is no longer valid, its login sessions end.
	Token func(token string) (user User, ok bool)

	// Password reports whether a password is a user's, and the user's access, for HTTP's
	// basic authentication. It is called in the same way as Token; see [Passwords].
	Password func(user, password string) (access Access, ok bool)

	// HasPasswords, if set, reports whether any user has a password at present. While
	// none has, the dashboard does as without Password.
	HasPasswords func() bool

	// SignOn logs users in at another site. Their login sessions last for 12 hours.
	SignOn *SignOn

	// UserHeader is a header with the user's name from a reverse proxy, such as
	// "X-Forwarded-User". It counts only from an address in TrustedProxies, which must be
	// set too. The proxy must remove the header from its clients' requests.
	UserHeader string

	// TrustedProxies are the addresses of reverse proxies. Only from them does the
	// dashboard accept UserHeader, X-Forwarded-Proto and X-Forwarded-For. It counts wrong
	// credentials by the last address in X-Forwarded-For.
	TrustedProxies []netip.Prefix

	// With Required, visitors must also authenticate to view the page.
	Required bool

	// AccessOf returns the access of a user named by UserHeader or [WithUser]. It is
	// called for every request. Default: they are operators.
	AccessOf func(user string) Access
}

// SignOn logs users in at another site, such as a provider of OpenID Connect. The browser
// goes there from the path login, and comes back to login/callback. The functions are
// called from several goroutines and must return within some seconds.
type SignOn struct {
	// Begin returns the address of the site for the browser.
	Begin func(ctx context.Context, flow Flow) (address string, err error)

	// Finish returns the user from the query of the returning browser. It must check that
	// the query has the flow's State.
	Finish func(ctx context.Context, query url.Values, flow Flow) (User, error)

	// Recheck, if set, returns the user with the present access. The dashboard calls it
	// for each login session in use, at most every 30 seconds, with the flow of its
	// Finish. If the error matches [ErrNoAccess], the login session ends; after any other
	// error it continues.
	Recheck func(ctx context.Context, user User, flow Flow) (User, error)

	// With Secure, browsers reach the dashboard over TLS: they send the login session's
	// cookie over nothing else. Without it, the request decides.
	Secure bool
}

// Flow has the secrets of one login, of 43 letters, digits, - and _ each. They belong to
// the browser in which the login began.
type Flow struct{ State, Nonce, Verifier string }

type userKey struct{}

// WithUser returns a request's context with the user, for authenticating handlers around
// the dashboard: it takes precedence over every other way. A name is ignored if it is
// empty, longer than 200 bytes, or not text.
func WithUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// way is how a user was authenticated. It decides the protection against other sites.
type way int

const (
	nobody   way = iota
	byBearer     // no browser sends that without a script
	byCookie
	byBrowser // sent with every request by the browser or a proxy
)

// visitor is the sender of a request.
type visitor struct {
	user    string
	access  Access
	way     way
	session string // its key, if there is one
	refused bool   // the request has wrong credentials
}

func (a Authentication) accessOf(user string) Access {
	if a.AccessOf == nil {
		return Operator
	}
	return a.AccessOf(user)
}

// takesPasswords reports whether users can authenticate with passwords.
func (a Authentication) takesPasswords() bool {
	return a.Password != nil && (a.HasPasswords == nil || a.HasPasswords())
}

// takes reports whether an Authorization header is meant for the dashboard. A header
// with another scheme is not: it can be for a reverse proxy with its own passwords.
func (a Authentication) takes(header string) bool {
	scheme, _, _ := strings.Cut(header, " ")
	return a.takesPasswords() && strings.EqualFold(scheme, "Basic") || a.Token != nil && strings.EqualFold(scheme, "Bearer")
}

// byHeader returns the visitor of the credentials in the headers, if they are valid.
func (a Authentication) byHeader(r *http.Request) (v visitor, ok bool) {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		user, ok := a.Token(strings.TrimSpace(token))
		return visitor{user: user.Name, access: user.Access, way: byBearer}, ok && isUser(user.Name)
	}
	user, password, ok := r.BasicAuth()
	if !ok || !isUser(user) {
		return visitor{}, false
	}
	access, ok := a.Password(user, password)
	return visitor{user: user, access: access, way: byBrowser}, ok
}
