package dashboard

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestViewersSeeAllAndChangeNothing: with every way to authenticate, a viewer reads
// every list and every action answers 403 with one line; an operator acts.
func TestViewersSeeAllAndChangeNothing(t *testing.T) {
	t.Parallel()
	who := authentication(t)
	who.Required = true
	who.AccessOf = func(user string) Access {
		if user == "olga" {
			return Operator
		}
		return Viewer
	}
	w := newWorld(t, Config{Authentication: who})
	violas, violasForgery := w.logIn(violasToken)
	annas, annasForgery := w.logIn(annasToken)
	basic := func(user, password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	for name, c := range map[string]struct {
		headers []string
		access  string
	}{
		"a viewer's token":       {[]string{"Authorization", "Bearer " + violasToken}, "viewer"},
		"a viewer's cookie":      {[]string{"Cookie", violas, "X-CSRF-Token", violasForgery}, "viewer"},
		"a viewer's password":    {[]string{"Authorization", basic("vito", vitosPassword)}, "viewer"},
		"an operator's token":    {[]string{"Authorization", "Bearer " + annasToken}, "operator"},
		"an operator's cookie":   {[]string{"Cookie", annas, "X-CSRF-Token", annasForgery}, "operator"},
		"an operator's password": {[]string{"Authorization", basic("bert", bertsPassword)}, "operator"},
	} {
		session := get[sessionRecord](w, "/api/session", c.headers...)
		if session.Access != c.access || !session.MayLook || session.MayAct != (c.access == "operator") || session.ReadOnly {
			t.Errorf("%s: %+v", name, session)
		}
		headers := append(slices.Clone(c.headers), "X-CSRF-Token", session.Token)
		for _, path := range []string{"now", "roles", "nodes", "events", "failovers", "incidents", "lanes"} {
			if response, text := w.request(http.MethodGet, "/api/"+path, "", headers...); response.StatusCode != http.StatusOK {
				t.Errorf("%s: %s: %s %s", name, path, response.Status, text)
			}
		}
		for _, action := range []string{
			stepDown, handOver, drain, undrain, rebalanceRoles, pauseProcessor, resumeProcessor, triggerSchedule, pauseSchedule, resumeSchedule, silenceAlert, acknowledgeAlert, "unknown",
		} {
			response, text := w.request(http.MethodPost, "/api/actions", object(map[string]any{"action": action, "name": "x"}), headers...)
			refused := response.StatusCode == http.StatusForbidden && strings.Contains(text, `"you are a viewer and may not act: log in as an operator"`)
			if refused != (c.access == "viewer") {
				t.Errorf("%s: %s: %s %s", name, action, response.Status, text)
			}
		}
	}
}

// TestAccessOfAppliesToUsersOfProxies: AccessOf decides for users whom a proxy or a handler
// around the dashboard names, and without it they are operators.
func TestAccessOfAppliesToUsersOfProxies(t *testing.T) {
	t.Parallel()
	who := authentication(t)
	ask := func(g *guard, user string) bool {
		r := httptest.NewRequest(http.MethodPost, "/api/actions", http.NoBody)
		r.RemoteAddr = "192.0.2.7:1"
		r.Header.Set("X-Forwarded-User", user)
		byProxy := g.mayAct(g.identify(r))
		r = httptest.NewRequest(http.MethodPost, "/api/actions", http.NoBody)
		r = r.WithContext(WithUser(r.Context(), user))
		if byHandler := g.mayAct(g.identify(r)); byHandler != byProxy {
			t.Errorf("%s acts by the proxy: %v, by the handler: %v", user, byProxy, byHandler)
		}
		return byProxy
	}
	if !ask(newGuard(Config{Authentication: who}), "vera") {
		t.Error("without AccessOf, a user of the proxy may not act")
	}
	who.AccessOf = func(user string) Access {
		if user == "olga" {
			return Operator
		}
		return Viewer
	}
	g := newGuard(Config{Authentication: who})
	if ask(g, "vera") || !ask(g, "olga") {
		t.Error("AccessOf does not decide who of the proxy's users may act")
	}
}

// TestAmbiguousAccessIsRefused: no user is both a viewer and an operator, and no two users
// share a token.
func TestAmbiguousAccessIsRefused(t *testing.T) {
	t.Parallel()
	anna, same := map[string]string{"anna": annasToken}, map[string]string{"anna": violasToken}
	if _, err := Tokens(anna, same); err == nil || !strings.Contains(err.Error(), `"anna" is an operator and a viewer`) {
		t.Errorf("tokens: %v", err)
	}
	if _, err := Passwords(anna, same); err == nil {
		t.Error("passwords: no error")
	}
	if _, err := Tokens(anna, map[string]string{"viola": annasToken}); err == nil || !strings.Contains(err.Error(), `"anna" and "viola" have the same token`) || strings.Contains(err.Error(), annasToken) {
		t.Errorf("one token of two users: %v", err)
	}
	if _, err := Passwords(anna, map[string]string{"viola": annasToken}); err != nil {
		t.Errorf("one password of two users: %v", err)
	}
}
