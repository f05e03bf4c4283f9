package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrNoAccess reports a user known to the site of a [SignOn] and without access to the
// dashboard; errors.Is finds it.
var ErrNoAccess = errors.New("the user has no access to the dashboard")

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

// How long a login at the other site may take.
const flowLife = 10 * time.Minute

// flowCookie names the cookie from which the flow is derived.
const flowCookie = "tenure_sign_on"

// flowOf derives the secrets of a login from its cookie. Only this process can: the state
// of another site's cookie is unknown to the site.
func (g *guard) flowOf(cookie string) Flow {
	secret := func(label string) string {
		mac := hmac.New(sha256.New, g.key)
		_, _ = io.WriteString(mac, "sign on\x00"+label+"\x00"+cookie) // never fails
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	return Flow{State: secret("state"), Nonce: secret("nonce"), Verifier: secret("verifier")}
}

// beginSignOn sends the browser to the other site.
func (g *guard) beginSignOn(w http.ResponseWriter, r *http.Request) {
	on := g.authentication.SignOn
	if on == nil {
		refuse(w, http.StatusNotFound, "this dashboard has no single sign-on")
		return
	}
	cookie := strconv.FormatInt(g.sessions.now().Unix(), 10) + "." + rand.Text()
	address, err := on.Begin(r.Context(), g.flowOf(cookie))
	if err != nil {
		g.log.Error("a login at the identity provider cannot begin", "from", g.addressOf(r), "error", err)
		say(w, http.StatusServiceUnavailable, "The identity provider cannot be used at the moment. Try again; the log of the dashboard has the reason.")
		return
	}
	http.SetCookie(w, g.signOnCookie(r, flowCookie, cookie, flowLife, http.SameSiteLaxMode)) // it comes back from another site
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// finishSignOn opens a login session for a returning browser. It goes to the page and
// nowhere else.
func (g *guard) finishSignOn(w http.ResponseWriter, r *http.Request) {
	on := g.authentication.SignOn
	if on == nil {
		refuse(w, http.StatusNotFound, "this dashboard has no single sign-on")
		return
	}
	http.SetCookie(w, g.signOnCookie(r, flowCookie, "", -time.Second, http.SameSiteLaxMode))
	flow, ok := g.flowIn(r)
	if !ok {
		say(w, http.StatusBadRequest, "This login did not begin in this browser, or it took too long. Open the dashboard and log in again.")
		return
	}
	user, err := on.Finish(r.Context(), r.URL.Query(), flow)
	if err == nil && !isUser(user.Name) {
		err = ErrNoAccess
	}
	from := g.addressOf(r)
	switch {
	case errors.Is(err, ErrNoAccess):
		g.log.Warn("a user without access was refused", "user", user.Name, "from", from, "error", err)
		say(w, http.StatusForbidden, "You are logged in at the identity provider, and have no access to this dashboard. Ask its operator for access.")
	case err != nil:
		g.log.Warn("a login at the identity provider failed", "from", from, "error", err)
		say(w, http.StatusBadGateway, "The login failed. Open the dashboard and log in again; the log of the dashboard has the reason.")
	default:
		g.log.Info("logged in to the dashboard", "user", user.Name, "access", user.Access, "from", from)
		http.SetCookie(w, g.signOnCookie(r, cookieName, g.sessions.begin(session{user: user, flow: flow}), sessionLife, http.SameSiteStrictMode))
		w.Header().Set("Location", g.basePath+"/")
		w.WriteHeader(http.StatusSeeOther)
	}
}

// flowIn returns the secrets of a browser's login.
func (g *guard) flowIn(r *http.Request) (Flow, bool) {
	names := []string{hostPrefix + flowCookie, securePrefix + flowCookie}
	if !g.secureSignOn(r) {
		names = append(names, flowCookie)
	}
	for _, name := range names {
		for _, cookie := range r.CookiesNamed(name) {
			began, _, _ := strings.Cut(cookie.Value, ".")
			seconds, err := strconv.ParseInt(began, 10, 64)
			flow := g.flowOf(cookie.Value)
			// Another host of the same domain can add cookies: only one has this state.
			ours := hmac.Equal([]byte(flow.State), []byte(r.URL.Query().Get("state")))
			if age := g.sessions.now().Sub(time.Unix(seconds, 0)); err == nil && ours && age < flowLife {
				return flow, true
			}
		}
	}
	return Flow{}, false
}

func (g *guard) secureSignOn(r *http.Request) bool {
	return g.authentication.SignOn.Secure || g.secure(r)
}

func (g *guard) signOnCookie(r *http.Request, name, value string, age time.Duration, site http.SameSite) *http.Cookie {
	return g.hiddenCookie(name, value, age, g.secureSignOn(r), site)
}

// say answers a browser outside the page with a sentence.
func say(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, sentence+"\n")
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
