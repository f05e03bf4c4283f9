package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

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

// The bounds on the body of a request.
const (
	maxBody     = 8 << 10 // bytes
	bodyTimeout = 5 * time.Second
)

// readBody reads the one JSON object of a request's body. If the body is invalid, it
// refuses the request.
func readBody[T any](w http.ResponseWriter, r *http.Request) (body T, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be of the type application/json")
		return body, false
	}
	// If the deadline cannot be set, the server's own limit applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&body)
	if err == nil {
		_, err = decoder.Token()
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
	case !errors.Is(err, io.EOF):
		refuse(w, http.StatusBadRequest, "the body must be one JSON object of the documented form")
	default:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the action may take longer
		return body, true
	}
	return body, false
}
