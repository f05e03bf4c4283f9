package dashboard

import (
	"net/http"
	"strings"
	"time"
)

// sessionRecord is the page's knowledge of its visitor.
type sessionRecord struct {
	Title     string `json:"title"`
	User      string `json:"user"`
	Access    string `json:"access"` // viewer, operator, or empty without a user
	MayLook   bool   `json:"may_look"`
	MayAct    bool   `json:"may_act"`
	LogIn     string `json:"log_in"`      // how one can: token, password, or not at all
	SignOn    bool   `json:"sign_on"`     // whether one can log in at another site
	CanLogOut bool   `json:"can_log_out"` // of a session
	ReadOnly  bool   `json:"read_only"`   // for everybody
	Token     string `json:"csrf_token"`
	Version   string `json:"version"` // of the page's files
}

func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) {
	g := d.guard
	v := g.identify(r)
	record := sessionRecord{
		Title: d.config.Title, User: v.user, MayLook: g.mayLook(v), MayAct: g.mayAct(v),
		LogIn: g.loginWay(), SignOn: g.authentication.SignOn != nil, CanLogOut: v.way == byCookie, ReadOnly: g.readOnly || !g.canBeKnown() && v.way == nobody, Version: version(),
	}
	asks := r.URL.Query().Has("login")
	wantsIn := !record.MayLook || v.way == nobody && asks
	onPage := record.LogIn == "token" || record.SignOn && !asks // the page shows how
	if wantsIn && !onPage {
		g.challenge(w, r) // the browser asks for a password
		return
	}
	if v.way != nobody {
		record.Token, record.Access = g.forgeryToken(v), v.access.String()
	}
	answer(w, http.StatusOK, record)
}

func (g *guard) loginWay() string {
	switch {
	case g.authentication.Token != nil:
		return "token"
	case g.authentication.takesPasswords():
		return "password"
	default:
		return ""
	}
}

// login opens a session for a visitor with a valid token.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	if err := g.origins.Check(r); err != nil {
		refuse(w, http.StatusForbidden, "cross-site requests are refused")
		return
	}
	address, attempts := g.addressOf(r), g.attemptsOf(r)
	switch {
	case g.authentication.Token == nil:
		refuse(w, http.StatusNotFound, "this dashboard has no login")
		return
	case !attempts.Allowed(address):
		tooMany(w)
		return
	}
	body, ok := readBody[struct {
		Token string `json:"token"`
	}](w, r)
	if !ok {
		return
	}
	token, user := strings.TrimSpace(body.Token), User{}
	valid, allowed, _ := attempts.Check(r.Context(), address, func() (ok bool, err error) {
		user, ok = g.authentication.Token(token)
		return ok && isUser(user.Name), nil
	})
	switch {
	case !allowed:
		tooMany(w)
		return
	case !valid:
		g.log.Warn("a wrong token was refused", "from", address)
		refuse(w, http.StatusUnauthorized, "that token is not valid")
		return
	}
	g.log.Info("logged in to the dashboard", "user", user.Name, "access", user.Access, "from", address)
	http.SetCookie(w, g.cookie(r, g.sessions.begin(session{token: token}), sessionLife))
	answer(w, http.StatusOK, map[string]string{"user": user.Name})
}

// logout ends the session of the visitor. No other site can do so: the browser does not
// send the cookie with its requests.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) {
	if err := g.origins.Check(r); err != nil {
		refuse(w, http.StatusForbidden, "cross-site requests are refused")
		return
	}
	for _, name := range cookieNames {
		for _, cookie := range r.CookiesNamed(name) {
			g.sessions.end(cookie.Value)
		}
	}
	http.SetCookie(w, g.cookie(r, "", -time.Second))
	answer(w, http.StatusOK, map[string]string{})
}

// secure reports whether a request came over TLS, to this server or to a proxy. The
// report comes from the proxy, or from the browser by the address of its page.
func (g *guard) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://") ||
		g.fromProxy(r) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// cookie returns the cookie for a session.
func (g *guard) cookie(r *http.Request, key string, age time.Duration) *http.Cookie {
	return g.hiddenCookie(cookieName, key, age, g.secure(r), http.SameSiteStrictMode)
}

// hiddenCookie returns a cookie out of the reach of scripts. With TLS it is never sent in
// the clear.
func (g *guard) hiddenCookie(name, value string, age time.Duration, secure bool, site http.SameSite) *http.Cookie {
	cookie := &http.Cookie{
		Name: name, Value: value, Path: g.basePath + "/", MaxAge: int(age.Seconds()), HttpOnly: true, SameSite: site, Secure: secure,
	}
	switch {
	case cookie.Secure && cookie.Path == "/":
		cookie.Name = hostPrefix + name
	case cookie.Secure:
		cookie.Name = securePrefix + name
	}
	return cookie
}
