package sidecar

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

const stepDownPath = "/v1/elections/billing/step-down"

// askedOverHTTP is who a client of a test is, by httptest's address.
const askedOverHTTP = "HTTP from 192.0.2.1:1234"

// authorized is the header of a request that may write.
var authorized = []string{"Authorization", "bearer " + secret, "Content-Type", "application/json; charset=utf-8"}

// TestStepDownHandsOverToTarget: the leader gives the role up, to whom it was asked to.
func TestStepDownHandsOverToTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		token := newToken(t)
		first, second := newHandler(t, Config{Token: token}), newHandler(t, Config{Token: token})
		one := campaign(t, db, "one", first, "billing")
		term := elected(t, one, "billing").Term()
		two := campaign(t, db, "two", second, "billing")
		campaign(t, db, "same", nil, "billing")
		campaign(t, db, "same", nil, "billing")
		synctest.Wait()

		call(t, second, "POST", stepDownPath, "", authorized...).refused(t, 409, codeNotLeader)
		call(t, first, "POST", "/v1/elections/other/step-down", "", authorized...).refused(t, 404, codeUnknownRole)
		call(t, first, "POST", "/v1/elections/%0A/step-down", "", authorized...).refused(t, 400, codeInvalidRole)
		unicorns := strings.Repeat("%F0%9F%A6%84", 200)
		call(t, first, "POST", "/v1/elections/"+unicorns+"/step-down", "", authorized...).refused(t, 400, codeInvalidRole)
		call(t, first, "POST", stepDownPath, `{"to":"three"}`, authorized...).refused(t, 404, codeUnknownNode)
		call(t, first, "POST", stepDownPath, `{"to":"same"}`, authorized...).refused(t, 409, codeAmbiguous)
		call(t, first, "POST", stepDownPath, `{"to":"one"}`, authorized...).refused(t, 409, codeUnknownNode)
		db.failWith(errors.New("down"))
		call(t, first, "POST", stepDownPath, `{"to":"two"}`, authorized...).refused(t, 503, codeDatabase)
		db.failWith(nil)
		if !term.Valid() {
			t.Fatal("a request that was refused ended the term")
		}

		r := decode[stepDownRecord](t, call(t, first, "POST", stepDownPath, `{"to":"two"}`, authorized...).want(t, 200).body)
		if r.Role != "billing" || r.Term != term.Number() || r.Node != one.ID() || r.NodeName != "one" || *r.To != two.ID() || !r.Released {
			t.Errorf("%+v", r)
		}
		elected(t, two, "billing")
		call(t, second, "POST", stepDownPath, `{"to":"`+strings.ToUpper(one.ID().String())+`"}`, authorized...).want(t, 200)
		elected(t, one, "billing")
		call(t, first, "POST", stepDownPath, "", authorized...).want(t, 200)
		call(t, first, "GET", "/leader", "").want(t, 503)
	})
}

// TestStepDownEndsOnlySeenTerm: if the term ends while the database is asked about the next
// leader, a later term of the same node is left alone.
func TestStepDownEndsOnlySeenTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{Token: newToken(t)})
		one := campaign(t, db, "one", h, "billing")
		first := elected(t, one, "billing").Term()
		two := campaign(t, db, "two", nil, "billing")
		synctest.Wait()
		var later *tenure.Term
		db.mu.Lock()
		db.offer = func() {
			if err := elected(t, one, "billing").HandOver(t.Context(), two.ID()); err != nil {
				t.Error(err)
			}
			if err := elected(t, two, "billing").HandOver(t.Context(), one.ID()); err != nil {
				t.Error(err)
			}
			later = elected(t, one, "billing").Term()
		}
		db.mu.Unlock()
		answered := call(t, h, "POST", stepDownPath, `{"to":"two"}`, authorized...)
		if !later.Valid() {
			t.Errorf("a request to end term %d ended term %d", first.Number(), later.Number())
		}
		answered.refused(t, 409, codeNotLeader)
	})
}

// TestStepDownWaitsForWork: the answer waits up to 30 s for the work. After that it
// says that the work still runs.
func TestStepDownWaitsForWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		node := campaign(t, newDatabase(), "one", h, "billing")
		guard, err := elected(t, node, "billing").Guard()
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Second, guard.Done)
		begun := time.Now()
		call(t, h, "POST", stepDownPath, "{}", authorized...).want(t, 200)
		if waited := time.Since(begun); waited != 20*time.Second {
			t.Errorf("it was answered after %v", waited)
		}
		if guard, err = elected(t, node, "billing").Guard(); err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		r := decode[stepDownRecord](t, call(t, h, "POST", stepDownPath, "{}", authorized...).want(t, 202).body)
		if waited := time.Since(begun); waited != 30*time.Second {
			t.Errorf("202 was answered after %v, want 30s", waited)
		}
		if r.Released || r.To != nil {
			t.Errorf("the answer is %+v, want a role that is not released, for no target", r)
		}
		call(t, h, "GET", "/leader", "").want(t, 503)
		guard.Done()
	})
}

// TestStepDownReportsLostSession: a session that is lost in the middle ends the term too,
// but the role is not free yet.
func TestStepDownReportsLostSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{Token: newToken(t)})
		node := campaign(t, db, "one", h, "billing")
		guard, err := elected(t, node, "billing").Guard()
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			db.Revoke(tenure.NamedRole("billing"))
			guard.Done()
		})
		call(t, h, "POST", stepDownPath, "", authorized...).refused(t, 503, codeSessionLost)
	})
}

// TestWritesNeedTokenAndOwnOrigin: no client without the token can write, and no page of another origin.
func TestWritesNeedTokenAndOwnOrigin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h, off := newHandler(t, Config{Token: newToken(t)}), newHandler(t, Config{})
		term := elected(t, campaign(t, db, "one", h, "billing"), "billing").Term()
		r := call(t, off, "POST", stepDownPath, "", authorized...).refused(t, 403, codeWritesOff)
		if !strings.Contains(r.body, "--token-file") {
			t.Errorf("it is not said how to turn writes on: %s", r.body)
		}
		for _, header := range []string{
			"", "Bearer", "Bearer ", secret, "Basic " + secret, "Bearer " + secret[1:], "Bearer " + secret + "x", "Bearer x",
			"Bearer \"" + secret + "\"", "Bearer " + secret + " " + secret, "Bearer,Bearer " + secret, "Bearer\t" + secret,
			"Bearer " + strings.ToUpper(secret), "Bearer " + strings.Repeat("x", 10000),
		} {
			r := call(t, h, "POST", stepDownPath, "", "Authorization", header).refused(t, 401, codeUnauthorized)
			if !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%q: %v", header, r.header)
			}
		}
		for _, foreign := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
		} {
			call(t, h, "POST", stepDownPath, "", append(foreign, authorized...)...).refused(t, 403, codeCrossOrigin)
		}
		if !term.Valid() {
			t.Fatal("a request that was refused ended the term")
		}
		call(t, h, "POST", stepDownPath, "", append([]string{"Sec-Fetch-Site", "same-origin"}, authorized...)...).want(t, 200)
	})
}

// TestStepDownRejectsInvalidBody: one object with at most the one field, of a bounded size.
func TestStepDownRejectsInvalidBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		term := elected(t, campaign(t, newDatabase(), "one", h, "billing"), "billing").Term()
		for _, body := range []string{
			"x", "null", "[]", `"two"`, `{"to":1}`, `{"from":"x"}`, `{"to":"two"}{}`, `{"to":"two"} x`, `{"to":"two"`, " ",
		} {
			call(t, h, "POST", stepDownPath, body, authorized...).refused(t, 400, codeInvalidBody)
		}
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json;;", "x"} {
			call(t, h, "POST", stepDownPath, "{}", "Authorization", authorized[1], "Content-Type", kind).refused(t, 415, codeMediaType)
		}
		call(t, h, "POST", stepDownPath, strings.Repeat("x", maxBody+1), authorized...).refused(t, 413, codeTooLarge)
		cut := httptest.NewRequestWithContext(t.Context(), "POST", stepDownPath, failingBody{})
		cut.Host = "localhost"
		cut.Header.Set("Authorization", authorized[1])
		serve(t, h, cut).refused(t, 400, codeInvalidBody)
		if !term.Valid() {
			t.Fatal("a request that was refused ended the term")
		}
		call(t, h, "POST", stepDownPath, `{"to":""}`, authorized...).want(t, 200)
	})
}

type failingBody struct{}

func (failingBody) Read([]byte) (int, error) { return 0, errors.New("cut") }

// TestChangedTokenIsLoaded: a new token counts a second later, or immediately after a
// reload; with a file that cannot be used, every request is refused.
func TestChangedTokenIsLoaded(t *testing.T) {
	t.Parallel()
	name := writeFile(t, "token", secret)
	synctest.Test(t, func(t *testing.T) {
		token, err := OpenToken(name, silent)
		if err != nil {
			t.Fatal(err)
		}
		h := newHandler(t, Config{Token: token})
		status := func(with string) int {
			return call(t, h, "POST", stepDownPath, "", "Authorization", "Bearer "+with).status
		}
		const newer = "another-secret-of-this-length"
		replace := func(content string) {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if status(secret) != 503 || status(newer) != 401 { // 503: the token is accepted, but there is no node yet
			t.Error("the token is not the file's")
		}
		replace(newer)
		if status(secret) != 503 {
			t.Error("the file is read more often than once a second")
		}
		time.Sleep(time.Second)
		if status(secret) != 401 || status(newer) != 503 {
			t.Error("the new token does not count")
		}
		replace(secret)
		if err := token.reload(); err != nil {
			t.Fatal(err)
		}
		if status(secret) != 503 || status(newer) != 401 {
			t.Error("the new token does not count after a reload")
		}
		for _, content := range []string{"", "short", "two words of enough length", strings.Repeat("x", maxToken+1)} {
			replace(content)
			time.Sleep(time.Second)
			for _, with := range []string{secret, newer, "x", content} {
				if got := status(with); got != 503 && got != 401 {
					t.Errorf("%q: %d", with, got)
				}
			}
			call(t, h, "POST", stepDownPath, "", authorized...).refused(t, 503, codeToken)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		call(t, h, "POST", stepDownPath, "", authorized...).refused(t, 503, codeToken)
		replace(secret + "\r\n")
		time.Sleep(time.Second)
		call(t, h, "POST", stepDownPath, "", authorized...).refused(t, 503, codeStarting)
	})
}

// TestInvalidTokenFileIsReportedWithoutToken: what is wrong with a file is one clear line that does not repeat it.
func TestInvalidTokenFileIsReportedWithoutToken(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"":                                    "is empty",
		" \n":                                 "is empty",
		"hunter2":                             "holds a token of 7 characters; it must have at least 16",
		"hunter2hunter2\nhunter2":             "on one line",
		strings.Repeat("hunter2", maxToken):   "longest token",
		"hunter2\x00\xff hunter2 hunter2 ...": "no header can carry",
	} {
		_, err := OpenToken(writeFile(t, "token", content), silent)
		if err == nil || !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", content, err)
		}
	}
	for _, name := range []string{t.TempDir(), t.TempDir() + "/none"} {
		if _, err := OpenToken(name, silent); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	readable := writeFile(t, "token", secret+"\n")
	if err := os.Chmod(readable, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenToken(readable, silent); !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "chmod 0640 "+readable) || strings.Contains(err.Error(), secret) {
		t.Errorf("a token that every user can read: %v", err)
	}
}

// TestStepDownEndsNamedTermOnly: a request that names a term does not end the next one of the
// same node.
func TestStepDownEndsNamedTermOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		node := campaign(t, newDatabase(), "one", h, "billing")
		before := elected(t, node, "billing").Term().Number()
		call(t, h, "POST", stepDownPath, fmt.Sprintf(`{"term":%d}`, before), authorized...).want(t, 200)
		term := elected(t, node, "billing").Term()
		r := call(t, h, "POST", stepDownPath, fmt.Sprintf(`{"term":%d}`, before), authorized...).refused(t, 409, codeNotLeader)
		if !term.Valid() || !strings.Contains(r.body, "is over") {
			t.Errorf("the present term is valid: %t; %s", term.Valid(), r.body)
		}
	})
}
