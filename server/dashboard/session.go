package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// The bounds on login sessions.
const (
	sessionLife = 12 * time.Hour
	userRecheck = 30 * time.Second // between checks whether the other site still knows a user
	maxSessions = 1000             // the oldest are removed
)

// sessions are the login sessions of users after a token or a login at another site. They
// are kept in memory: after a restart, users log in again. It is safe for concurrent use.
type sessions struct {
	now func() time.Time

	mu   sync.Mutex
	open map[string]session // by the digest of their key: memory that leaks opens none
}

// session keeps the token with which it began, and ends with it.
type session struct {
	token string // empty after a login at another site
	user  User   // after a login at another site
	flow  Flow   // of that login
	began time.Time

	checked  time.Time // when the other site was last asked about the user
	checking bool
}

func newSessions() *sessions { return &sessions{now: time.Now, open: map[string]session{}} }

// begin opens a session and returns its key.
func (s *sessions) begin(opened session) string {
	key := rand.Text()
	now := s.now()
	opened.began, opened.checked = now, now
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest, at := "", now.Add(time.Second)
	for digest, session := range s.open {
		if now.Sub(session.began) >= sessionLife {
			delete(s.open, digest)
		} else if session.began.Before(at) {
			oldest, at = digest, session.began
		}
	}
	if len(s.open) >= maxSessions {
		delete(s.open, oldest)
	}
	s.open[digestOf(key)] = opened
	return key
}

// find returns the session of a request. Another host of the same domain can add cookies
// with the same name. They name no session, or the other host's: cookies it cannot set
// take precedence.
func (s *sessions) find(r *http.Request, token func(string) (User, bool)) (user User, key string, ok bool) {
	for _, name := range cookieNames {
		for _, cookie := range r.CookiesNamed(name) {
			s.mu.Lock()
			found, ok := s.open[digestOf(cookie.Value)]
			s.mu.Unlock()
			if !ok || s.now().Sub(found.began) >= sessionLife {
				continue
			}
			if user, ok = found.user, found.token == ""; !ok && token != nil {
				user, ok = token(found.token)
			}
			if ok && isUser(user.Name) {
				return user, cookie.Value, true
			}
		}
	}
	return User{}, "", false
}

// due reports whether it is time to ask the other site about the user of a session. If
// so, settle must follow.
func (s *sessions) due(key string) (opened session, due bool) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	opened, found := s.open[digestOf(key)]
	if !found || opened.token != "" || opened.checking || now.Sub(opened.checked) < userRecheck {
		return session{}, false
	}
	opened.checked, opened.checking = now, true
	s.open[digestOf(key)] = opened
	return opened, true
}

// settle keeps the other site's answer about the user of a session.
func (s *sessions) settle(key string, user User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if opened, found := s.open[digestOf(key)]; found {
		opened.user, opened.checking = user, false
		s.open[digestOf(key)] = opened
	}
}

func (s *sessions) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, digestOf(key))
}

func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// cookieName names the session. The cookie is bound to its host by naming no
// domain. Browsers take a name with a prefix only from TLS, and the first one only
// from the host itself, for all of its paths (RFC 6265bis, section 4.1.3).
const (
	cookieName   = "tenure_session"
	hostPrefix   = "__Host-"
	securePrefix = "__Secure-"
)

// cookieNames are all names of the session's cookie, the hardest to forge first.
var cookieNames = []string{hostPrefix + cookieName, securePrefix + cookieName, cookieName}
