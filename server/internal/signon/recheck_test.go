package signon

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/server/dashboard"
)

// A user whom the provider removes from the group that gave access is logged out within
// a minute, with the open stream. A user who may do less keeps the login with less.
func TestGroupsOfTheProviderReachOpenLogins(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	s := newSite(t, clientSecret, func(c *Config) {
		c.OperatorEmails, c.ViewerEmails = nil, nil
		c.OperatorGroups, c.ViewerGroups = []string{"sre"}, []string{"everyone"}
	})
	olga, vera := newBrowser(t), newBrowser(t)
	olga.logIn(s.url+"/login", "olga")
	vera.logIn(s.url+"/login", "vera")
	session := func(b *browser) string {
		_, _, text := b.do(http.MethodGet, s.url+"/api/session", nil)
		return text
	}
	if text := session(olga); !strings.Contains(text, `"access":"operator"`) {
		t.Fatalf("the session of olga is %s; want an operator's", text)
	}
	stream := vera.openStream(s.url)
	began := time.Now()
	s.identity.move("olga", "everyone")
	s.identity.move("vera", "nothing")

	select {
	case <-stream:
	case <-time.After(time.Until(began.Add(time.Minute))):
		t.Error("a minute after the user was removed from the group, the stream is open")
	}
	if status, _, text := vera.do(http.MethodGet, s.url+"/api/now", nil); status != http.StatusUnauthorized {
		t.Errorf("after the user was removed from the group, a request is answered with %d %s; want 401", status, text)
	}
	if text := session(olga); !strings.Contains(text, `"user":"olga@example.com","access":"viewer","may_look":true,"may_act":false`) {
		t.Errorf("the session of a former operator is %s; want a viewer's", text)
	}
}

// A provider that does not answer ends no login.
func TestLoginOutlivesSilentProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t, clientSecret, func(*Config) {})
	b := newBrowser(t)
	b.logIn(s.url+"/login", "olga")
	s.provider.mu.Lock()
	states := make([]string, 0, len(s.provider.open))
	for state := range s.provider.open {
		states = append(states, state)
	}
	s.provider.mu.Unlock()
	if len(states) != 1 {
		t.Fatalf("%d logins are kept, want 1", len(states))
	}
	flow, user := dashboard.Flow{State: states[0]}, dashboard.User{Name: "olga@example.com", Access: dashboard.Operator}
	if now, err := s.provider.recheck(t.Context(), user, flow); err != nil || now != user {
		t.Errorf("the user is %v, error %v; want an operator", now, err)
	}
	s.identity.stop()
	if now, err := s.provider.recheck(t.Context(), user, flow); err == nil || errors.Is(err, dashboard.ErrNoAccess) || now != user {
		t.Errorf("without the provider the user is %v, error %v; want the same user, and an error that does not end the login", now, err)
	}
}

// openStream follows the dashboard and returns a channel that is closed when the stream
// ends.
func (b *browser) openStream(address string) <-chan struct{} {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address+"/api/stream", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	response, err := b.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("the stream: %v %v", response, err)
	}
	b.Cleanup(func() { _ = response.Body.Close() })
	ended := make(chan struct{})
	go func() { // exits when the stream ends, or with the test's context
		defer close(ended)
		_, _ = io.Copy(io.Discard, response.Body)
	}()
	return ended
}
