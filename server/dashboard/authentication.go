package dashboard

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/internal/httpguard"
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

func (a Authentication) validate() error {
	switch {
	case a.SignOn != nil && (a.SignOn.Begin == nil || a.SignOn.Finish == nil):
		return invalid("SignOn requires Begin and Finish")
	case a.UserHeader != "" && len(a.TrustedProxies) == 0:
		return invalid("UserHeader requires TrustedProxies: otherwise any client could send it")
	case slices.ContainsFunc(a.TrustedProxies, func(p netip.Prefix) bool { return !p.IsValid() }):
		return invalid("a prefix in TrustedProxies is not valid")
	default:
		return nil
	}
}

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

// identify determines the sender of a request.
func (g *guard) identify(r *http.Request) visitor {
	if user, ok := r.Context().Value(userKey{}).(string); ok && isUser(user) {
		return visitor{user: user, access: g.authentication.accessOf(user), way: byBrowser}
	}
	a := g.authentication
	if a.UserHeader != "" && g.fromProxy(r) {
		if given := r.Header.Values(a.UserHeader); len(given) == 1 && isUser(given[0]) {
			return visitor{user: given[0], access: a.accessOf(given[0]), way: byBrowser}
		}
	}
	if a.takes(r.Header.Get("Authorization")) {
		return g.byHeader(r)
	}
	user, key, ok := g.sessions.find(r, a.Token)
	if ok {
		user, ok = g.recheck(r.Context(), user, key)
	}
	if ok {
		return visitor{user: user.Name, access: user.Access, way: byCookie, session: key}
	}
	return visitor{}
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

// byHeader checks the credentials in the headers.
func (g *guard) byHeader(r *http.Request) visitor {
	address, known := g.addressOf(r), visitor{}
	valid, allowed, _ := g.attemptsOf(r).Check(r.Context(), address, func() (ok bool, err error) {
		known, ok = g.authentication.byHeader(r)
		return ok, nil
	})
	if !valid {
		if allowed {
			g.log.Warn("wrong credentials were refused", "from", address, "path", r.URL.Path)
		}
		return visitor{refused: true}
	}
	return known
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

// fromProxy reports whether a request comes from a trusted proxy.
func (g *guard) fromProxy(r *http.Request) bool {
	return httpguard.Proxies(g.authentication.TrustedProxies).Sent(r)
}

// addressOf returns the address for counting the wrong credentials of a request.
func (g *guard) addressOf(r *http.Request) string {
	return httpguard.Proxies(g.authentication.TrustedProxies).Client(r)
}

// attemptsOf returns the counter for the wrong credentials of a request. Handlers beside
// the dashboard can share it.
func (g *guard) attemptsOf(r *http.Request) *httpguard.Attempts {
	return httpguard.AttemptsOf(r.Context(), g.attempts)
}
