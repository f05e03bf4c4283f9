package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/exactly-one/tenure/internal/httpguard"
)

// guard decides which visitors may view and act, and rejects requests from the pages of
// other sites.
type guard struct {
	authentication Authentication
	readOnly       bool
	basePath       string
	hosts          *httpguard.Hosts
	named          bool // hosts are given
	log            *slog.Logger
	sessions       *sessions
	attempts       *httpguard.Attempts
	origins        *http.CrossOriginProtection
	key            []byte // of the tokens against forged requests
}

func newGuard(config Config) *guard {
	return &guard{
		hosts: httpguard.NewHosts(config.Hosts...), named: len(config.Hosts) > 0,
		authentication: config.Authentication, readOnly: config.ReadOnly, basePath: strings.TrimSuffix(config.BasePath, "/"), log: config.Logger,
		sessions: newSessions(), attempts: httpguard.NewAttempts(), origins: http.NewCrossOriginProtection(), key: []byte(rand.Text()),
	}
}

// policy allows the page to use only files and data of the dashboard.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// everything wraps every request.
func (g *guard) everything(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		header.Set("Cache-Control", "no-store")
		if !g.knownHost(r) {
			refuse(w, http.StatusMisdirectedRequest, "this dashboard is not served under that name; its operator can allow the name")
			return
		}
		if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
			refuse(w, http.StatusNotFound, "there is no such page") // and no redirect to another
			return
		}
		if g.basePath == "" {
			next.ServeHTTP(w, r)
			return
		}
		rest, ok := strings.CutPrefix(r.URL.Path, g.basePath)
		switch {
		case ok && rest == "":
			http.Redirect(w, r, g.basePath+"/", http.StatusPermanentRedirect)
		case ok && rest[0] == '/':
			http.StripPrefix(g.basePath, next).ServeHTTP(w, r)
		default:
			refuse(w, http.StatusNotFound, "there is no such page")
		}
	})
}

// knownHost reports whether the host name in a request may be this server's. On other
// interfaces than the loopback one, every name is accepted unless names are configured.
func (g *guard) knownHost(r *http.Request) bool {
	if g.hosts.Given(r.Host) || httpguard.IsLoopbackName(r.Host) {
		return true
	}
	return !g.named && !httpguard.OnLoopback(r)
}

type visitorKey struct{}

func visitorOf(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
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

// recheck asks the other site for the present access of a login session's user, if it is
// time. It reports whether the session continues.
func (g *guard) recheck(ctx context.Context, user User, key string) (User, bool) {
	on := g.authentication.SignOn
	if on == nil || on.Recheck == nil {
		return user, true
	}
	opened, due := g.sessions.due(key)
	if !due {
		return user, true
	}
	// The answer is for later requests too, so the end of this one does not cancel it.
	now, err := on.Recheck(context.WithoutCancel(ctx), opened.user, opened.flow)
	switch {
	case errors.Is(err, ErrNoAccess) || err == nil && !isUser(now.Name):
		g.log.Warn("a login ended: the user has no access any longer", "user", user.Name, "error", err)
		g.sessions.end(key)
		return User{}, false
	case err != nil:
		g.log.Warn("the identity provider did not say what a user may do: the login continues", "user", user.Name, "error", err)
		now = opened.user
	}
	g.sessions.settle(key, now)
	return now, true
}

// reading answers visitors with the right to view.
func (g *guard) reading(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.identify(r)
		if !g.mayLook(v) {
			g.challenge(w, r)
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
	})
}

func (g *guard) mayLook(v visitor) bool {
	return !v.refused && (v.way != nobody || !g.authentication.Required)
}

// challenge asks for credentials.
func (g *guard) challenge(w http.ResponseWriter, r *http.Request) {
	if !g.attemptsOf(r).Allowed(g.addressOf(r)) {
		tooMany(w)
		return
	}
	switch {
	case g.authentication.takesPasswords():
		w.Header().Set("WWW-Authenticate", `Basic realm="tenure", charset="UTF-8"`)
	case g.authentication.Token != nil:
		w.Header().Set("WWW-Authenticate", `Bearer realm="tenure"`)
	}
	refuse(w, http.StatusUnauthorized, "you are not logged in")
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "60")
	refuse(w, http.StatusTooManyRequests, "too many wrong credentials; try again in a minute")
}

// acting answers authenticated users with the right to act, and no page of another site.
func (g *guard) acting(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.origins.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "cross-site requests are refused")
			return
		}
		v := g.identify(r)
		switch {
		case g.readOnly || !g.canBeKnown() && v.way == nobody:
			refuse(w, http.StatusForbidden, "this dashboard is read-only")
		case v.way == nobody:
			g.challenge(w, r)
		case !g.mayAct(v):
			refuse(w, http.StatusForbidden, "you are a viewer and may not act: log in as an operator")
		case v.way != byBearer && !hmac.Equal([]byte(r.Header.Get("X-CSRF-Token")), []byte(g.forgeryToken(v))):
			answer(w, http.StatusForbidden, forgedRecord{"the request does not come from this page; load it again", true})
		default:
			next(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
		}
	})
}

// forgedRecord refuses a request without the token of its page. After a restart, the
// token is another one.
type forgedRecord struct {
	Error  string `json:"error"`
	Forged bool   `json:"forged"`
}

// canBeKnown reports whether a request could authenticate its sender.
func (g *guard) canBeKnown() bool {
	a := g.authentication
	return a.Token != nil || a.takesPasswords() || a.UserHeader != "" || a.SignOn != nil
}

func (g *guard) mayAct(v visitor) bool {
	return !g.readOnly && v.way != nobody && v.access == Operator
}

// forgeryToken returns the token that only the page of a visitor can send.
func (g *guard) forgeryToken(v visitor) string {
	mac := hmac.New(sha256.New, g.key)
	_, _ = io.WriteString(mac, v.session+"\x00"+v.user) // never fails
	return hex.EncodeToString(mac.Sum(nil))
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
