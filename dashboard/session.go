package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// The bounds on sessions of people who entered a token.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 1000 // the oldest make room
)

// sessions are those who entered a token. They are kept in memory: when the
// process starts again, people enter it again. It is safe for concurrent use.
type sessions struct {
	now func() time.Time

	mu   sync.Mutex
	open map[string]session // by the digest of their key: memory that leaks opens none
}

// session remembers with which token it began, so that it ends with it.
type session struct {
	token string
	began time.Time
}

func newSessions() *sessions { return &sessions{now: time.Now, open: map[string]session{}} }

// begin opens a session and returns its key.
func (s *sessions) begin(token string) string {
	key := rand.Text()
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest, at := "", now
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
	s.open[digestOf(key)] = session{token, now}
	return key
}

// find returns whose session a request belongs to.
func (s *sessions) find(r *http.Request, token func(string) (string, bool)) (user, key string, ok bool) {
	cookie, err := r.Cookie(cookieName)
	if err != nil || token == nil {
		return "", "", false
	}
	s.mu.Lock()
	found, ok := s.open[digestOf(cookie.Value)]
	s.mu.Unlock()
	if !ok || s.now().Sub(found.began) >= sessionLife {
		return "", "", false
	}
	user, ok = token(found.token)
	return user, cookie.Value, ok && isUser(user)
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

// secure reports whether a request came over TLS, to here or to a proxy.
func (g *guard) secure(r *http.Request) bool {
	return r.TLS != nil || g.fromProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https"
}

// cookieName names the session. The cookie is bound to its host by naming no
// domain.
const cookieName = "tenure_session"

// cookie keeps the key of a session from scripts, from other sites, and from the
// wire where there is TLS.
func (g *guard) cookie(r *http.Request, key string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: key, Path: g.basePath + "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: g.secure(r),
	}
}
