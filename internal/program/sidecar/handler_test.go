package sidecar

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/tenuretest"
)

// TestHealthAnswersBeforeAttach: while the node waits for its database the process is seen to
// live, and nothing else.
func TestHealthAnswersBeforeAttach(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Token: newToken(t)})
	if r := decode[healthRecord](t, call(t, h, "GET", "/healthz", "").want(t, 200).body); r != (healthRecord{"ok", "v1.2.3"}) {
		t.Errorf("%+v", r)
	}
	if r := decode[readyRecord](t, call(t, h, "GET", "/readyz", "").want(t, 503).body); r.Ready || r.Reason != notYet {
		t.Errorf("%+v", r)
	}
	for _, target := range []string{"/leader", "/v1/elections", "/v1/leaders", "/v1/leaders/billing"} {
		call(t, h, "GET", target, "").refused(t, 503, codeStarting)
	}
	call(t, h, "POST", "/v1/elections/billing/step-down", "", "Authorization", "Bearer "+secret).refused(t, 503, codeStarting)
}

// TestLeaderStatusFollowsTerm: the status alone says whether this node leads, at every moment.
func TestLeaderStatusFollowsTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		role := tenure.NamedRole("billing")
		db.Occupy(role)
		h := newHandler(t, Config{})
		node := campaign(t, db, "one", h, "billing")
		time.Sleep(time.Second) // it may make some attempts in quick succession first
		synctest.Wait()
		r := decode[electionRecord](t, call(t, h, "GET", "/leader", "").want(t, 503).body)
		if r.Leading || r.Term != nil || !time.Time(r.BeganAt).IsZero() || r.Node != node.ID() || r.NodeName != "one" || r.State != "follower" {
			t.Errorf("standby: %+v", r)
		}
		db.Vacate(role)
		election := elected(t, node, "billing")
		r = decode[electionRecord](t, call(t, h, "GET", "/leader?role=billing", "").want(t, 200).body)
		term := election.Term()
		if !r.Leading || r.Term == nil || *r.Term != term.Number() || !time.Time(r.BeganAt).Equal(term.AcquiredAt()) || *r.RemainingSeconds <= 0 {
			t.Errorf("leader: %+v", r)
		}
		if head := call(t, h, "HEAD", "/leader", "").want(t, 200); head.header.Get("Content-Type") != "application/json" {
			t.Errorf("HEAD: %v", head.header)
		}
		if err := election.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		call(t, h, "GET", "/leader", "").want(t, 503)
	})
}

// TestRoleMustBeNamedAmongSeveral: for a node with several roles, a request must name the role.
func TestRoleMustBeNamedAmongSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		node := campaign(t, newDatabase(), "one", h)
		call(t, h, "GET", "/leader", "").refused(t, 503, codeStarting)
		for _, name := range []string{"b", "a/c", "..", "日本 %2F"} {
			if _, err := node.Election(tenure.NamedRole(name)); err != nil {
				t.Fatal(err)
			}
			call(t, h, "GET", "/leader?role="+url.QueryEscape(name), "").want(t, 503)
		}
		r := call(t, h, "GET", "/leader", "").refused(t, 400, codeRoleNeeded)
		if !strings.Contains(r.body, `\"..\", \"a/c\", \"b\", \"日本 %2F\"`) {
			t.Errorf("the roles are not listed: %s", r.body)
		}
		call(t, h, "GET", "/leader?role=b&role=c", "").refused(t, 400, codeRoleNeeded)
		call(t, h, "GET", "/leader?role=c", "").refused(t, 404, codeUnknownRole)
		call(t, h, "GET", "/leader?role=", "").refused(t, 400, codeInvalidRole)
		call(t, h, "GET", "/leader?role=%0a", "").refused(t, 400, codeInvalidRole)
		all := decode[electionsRecord](t, call(t, h, "GET", "/v1/elections", "").want(t, 200).body)
		if len(all.Elections) != 4 || all.Elections[0].Role != ".." || all.Elections[3].Role != "日本 %2F" || !all.Connected || all.Node != node.ID() {
			t.Errorf("%+v", all)
		}
		for i := range 40 {
			if _, err := node.Election(tenure.KeyRole(int64(i))); err != nil {
				t.Fatal(err)
			}
		}
		if r := call(t, h, "GET", "/leader", "").refused(t, 400, codeRoleNeeded); !strings.Contains(r.body, "and 24 more") {
			t.Errorf("too many roles are listed: %s", r.body)
		}
	})
}

// TestReadyFollowsSession: a node is ready while its session is open and can be renewed, also as
// a standby.
func TestReadyFollowsSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h, standby := newHandler(t, Config{}), newHandler(t, Config{})
		node := campaign(t, db, "one", h, "billing")
		term := elected(t, node, "billing").Term()
		campaign(t, db, "two", standby, "billing")
		for range 100 { // at every phase of the heartbeat
			call(t, h, "GET", "/readyz", "").want(t, 200)
			call(t, standby, "GET", "/readyz", "").want(t, 200)
			time.Sleep(137 * time.Millisecond)
		}
		db.Fail(errors.New("down"))
		begun, seen := time.Now(), map[string]time.Duration{}
		for term.Valid() {
			state := "ready"
			if r := call(t, h, "GET", "/readyz", ""); r.status != 200 {
				state = "unready"
				if reason := decode[readyRecord](t, r.body).Reason; !strings.Contains(reason, "leads but cannot renew") {
					t.Fatalf("the reason is %q", reason)
				}
			}
			seen[state] = time.Since(begun)
			call(t, h, "GET", "/leader", "").want(t, 200) // still trusted
			time.Sleep(100 * time.Millisecond)
		}
		if seen["unready"]-seen["ready"] < 2*time.Second {
			t.Errorf("it was not reported in time: %v", seen)
		}
		call(t, h, "GET", "/leader", "").want(t, 503)
		r := decode[readyRecord](t, call(t, h, "GET", "/readyz", "").want(t, 503).body)
		if !strings.Contains(r.Reason, "session with the database is lost") {
			t.Errorf("the reason is %q", r.Reason)
		}
		call(t, h, "GET", "/healthz", "").want(t, 200)
		db.Fail(nil)
	})
}

// TestLeadersAreReadFromDatabase: who leads anywhere, as the database says.
func TestLeadersAreReadFromDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{})
		campaign(t, db, "one", h)
		if r := call(t, h, "GET", "/v1/leaders", "").want(t, 200); r.body != "{\"leaders\":[]}\n" {
			t.Errorf("no node leads: %s", r.body)
		}
		names := []string{"..", "/", "a/b", "b", "key:1:2", "日本%"}
		two := campaign(t, db, "two", nil, names...)
		for _, name := range names {
			elected(t, two, name)
		}
		time.Sleep(lookUpInterval)
		all := decode[leadersRecord](t, call(t, h, "GET", "/v1/leaders", "").want(t, 200).body).Leaders
		for i, name := range names {
			escaped := strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
			one := decode[roleRecord](t, call(t, h, "GET", "/v1/leaders/"+escaped, "").want(t, 200).body)
			if one.Role != name || one.Leader.Node != two.ID() || one.Leader.NodeName != "two" || one.Leader.ValidSeconds <= 0 {
				t.Errorf("%s: %+v", name, one)
			}
			if len(all) != len(names) || all[i].Role != name || all[i].Leader.Term != one.Leader.Term {
				t.Errorf("%+v has not %+v", all, one)
			}
		}
		for written, role := range map[string]string{"b=0x7": "b", "pair:1,2": "key:1:2", "key:0x1:2": "key:1:2"} {
			if one := decode[roleRecord](t, call(t, h, "GET", "/v1/leaders/"+written, "").want(t, 200).body); one.Role != role {
				t.Errorf("%s: %+v", written, one)
			}
		}
		call(t, h, "GET", "/v1/leaders/b=99999999999999999999", "").refused(t, 400, codeInvalidRole)
		call(t, h, "GET", "/v1/leaders/none", "").refused(t, 404, codeNoLeader)
		call(t, h, "GET", "/v1/leaders/"+strings.Repeat("x", 256), "").refused(t, 400, codeInvalidRole)
		call(t, h, "GET", "/v1/leaders/%ff", "").refused(t, 400, codeInvalidRole)
	})
}

// TestLeadersAreReadOncePerSecond: however many clients ask, the database is asked once a second,
// also while it fails; and a client that goes takes nothing from the others.
func TestLeadersAreReadOncePerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{})
		node, err := tenure.Open(t.Context(), db, tenure.Config{Logger: silent})
		if err != nil {
			t.Fatal(err)
		}
		defer node.Close(t.Context())
		h.member.Store(h.newMember(node, nil, "")) // without an observation
		for _, fail := range []error{nil, errors.New("down"), tenure.ErrConnection} {
			db.failWith(fail)
			time.Sleep(lookUpInterval)
			before := db.questions()
			want := http.StatusOK
			if fail != nil {
				want = http.StatusServiceUnavailable
			}
			for range 1000 {
				call(t, h, "GET", "/v1/leaders", "").want(t, want)
				time.Sleep(10 * time.Millisecond)
			}
			if asked := db.questions() - before; asked != 10 {
				t.Errorf("the database was asked %d times in 10 s", asked)
			}
		}
		h.end()
		time.Sleep(lookUpInterval)
		call(t, h, "GET", "/v1/leaders", "").refused(t, 503, codeDatabase)
		h.Close()
		call(t, h, "GET", "/v1/leaders", "").refused(t, 503, codeStopping)
	})
}

// TestUnknownPathsAndMethodsAreRejected: other paths and methods are refused in the API's own way, and every
// answer forbids what a browser could do with it.
func TestUnknownPathsAndMethodsAreRejected(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{})
	for _, target := range []string{"/", "/nothing", "/healthz/", "/v1", "/v1/", "/v1/leaders/a/b", "/v1/elections/a", "/v1/elections//step-down", "/v1/elections/step-down", "//healthz", "/v1/../healthz", "/%68ealthz", "/metrics", "/.git/config", "/v1/leaders/"} {
		call(t, h, "GET", target, "").refused(t, 404, codeNotFound)
	}
	for target, allow := range map[string]string{
		"/healthz": "GET, HEAD", "/v1/events": "GET, HEAD", "/v1/elections/a/step-down": "POST",
	} {
		for _, method := range []string{"PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "X"} {
			if r := call(t, h, method, target, "").refused(t, 405, codeMethod); r.header.Get("Allow") != allow {
				t.Errorf("%s %s allows %q", method, target, r.header.Get("Allow"))
			}
		}
	}
	call(t, h, "GET", "/v1/elections/a/step-down", "").refused(t, 405, codeMethod)
	for _, target := range []string{"/healthz", "/nothing", "/leader", "/v1/openapi.json"} {
		r := call(t, h, "GET", target, "")
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", target, name, got)
			}
		}
	}
	if r := call(t, h, "GET", "/v1/openapi.json", "").want(t, 200); r.body != string(description)+"\n" {
		t.Error("the description is another")
	}
}

// TestHandOverFailsWithoutRegistry: a database that does not know its nodes cannot hand over.
func TestHandOverFailsWithoutRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		elected(t, campaign(t, tenuretest.NewDatabase(), "one", h, "billing"), "billing")
		call(t, h, "POST", "/v1/elections/billing/step-down", `{"to":"two"}`,
			"Authorization", "Bearer "+secret, "Content-Type", "application/json").refused(t, 400, codeUnknownNode)
	})
}
