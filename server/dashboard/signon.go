package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

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
