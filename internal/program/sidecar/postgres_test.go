package sidecar

import (
	"net/http"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/record"
)

// TestHandOverByNameWorksOnPostgreSQL: two real nodes on a real database, asked over the wire: who
// leads, a hand-over by name, and the events of it.
func TestHandOverByNameWorksOnPostgreSQL(t *testing.T) {
	t.Parallel()
	db := postgrestest.Unmigrated(t).Backend
	token := newToken(t)
	first, second := newHandler(t, Config{Token: token}), newHandler(t, Config{Token: token})
	listener, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	one := campaign(t, db, "one", first, "billing")
	stop := serveOn(t, listener, first, nil)
	term := elected(t, one, "billing").Term()
	two := campaign(t, db, "two", second, "billing")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	events := follow(t, &http.Client{Transport: transport}, "http://"+listener.Addr().String(), first.feed.Position(0).String())

	call(t, second, "POST", stepDownPath, "", authorized...).refused(t, 409, codeNotLeader)
	call(t, first, "POST", stepDownPath, `{"to":"three"}`, authorized...).refused(t, 404, codeUnknownNode)
	done := decode[stepDownRecord](t, call(t, first, "POST", stepDownPath, `{"to":"two"}`, authorized...).want(t, 200).body)
	if done.Term != term.Number() || *done.To != two.ID() {
		t.Errorf("%+v", done)
	}
	next := elected(t, two, "billing").Term()
	call(t, second, "GET", "/leader", "").want(t, 200)
	call(t, first, "GET", "/leader", "").want(t, 503)
	call(t, first, "GET", "/readyz", "").want(t, 200)

	seen := map[string]bool{}
	for begun := time.Now(); !seen["acquired"] || !seen["released"] || !seen["two leads"]; {
		m, err := events.next()
		if err != nil || time.Since(begun) > 30*time.Second {
			t.Fatalf("%v, seen %v", err, seen)
		}
		if m.kind == kindElection {
			checkSchema(t, "Event", m.data)
			seen[string(decode[record.Event](t, m.data).Event)] = true
			continue
		}
		checkSchema(t, "Change", m.data)
		if change := decode[record.Change](t, m.data); change.Leader != nil && change.Leader.Node == two.ID() {
			seen["two leads"] = change.Role == "billing" && change.Leader.Term == next.Number()
		}
	}
	leader := decode[roleRecord](t, call(t, second, "GET", "/v1/leaders/billing", "").want(t, 200).body).Leader
	if leader.Node != two.ID() || leader.Term != next.Number() || !time.Time(leader.AcquiredAt).Equal(next.AcquiredAt()) {
		t.Errorf("%+v", leader)
	}
	call(t, second, "POST", stepDownPath, "", authorized...).want(t, 200)
	terms, err := db.History(t.Context(), history.Query{Role: "billing", Until: time.Time(leader.AcquiredAt)})
	if err != nil || len(terms) != 2 {
		t.Fatalf("%+v, %v; want two terms", terms, err)
	}
	for i, reason := range []tenure.EndReason{history.EndSteppedDown, history.EndHandedOver} {
		if terms[i].Reason != reason || terms[i].By != askedOverHTTP {
			t.Errorf("%+v; want it %s, and who asked for that", terms[i], reason)
		}
	}
	events.close()
	stop()
}

// TestGuardKeepsRoleOnPostgreSQL: an operator asks the leader through the database to step
// down. The role is free when the client of the leader's node has ended its piece of work.
func TestGuardKeepsRoleOnPostgreSQL(t *testing.T) {
	t.Parallel()
	db := postgrestest.Unmigrated(t).Backend
	h := newHandler(t, Config{Token: newToken(t)})
	listener, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	one := campaignWith(t, db, settled("one"), h, "billing")
	serveOn(t, listener, h, nil)
	term := elected(t, one, "billing").Term()
	two := campaignWith(t, db, settled("two"), nil, "billing")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	f := hold(t, &http.Client{Transport: transport}, "http://"+listener.Addr().String(), `{"at_most_seconds":5}`)
	f.expect(t, kindGuard)
	if err := db.Request(t.Context(), tenure.Request{Kind: tenure.RequestStepDown, Role: "billing", Term: term.Number(), By: "test"}); err != nil {
		t.Fatal(err)
	}
	f.expect(t, kindStopping)
	leader, err := db.Leaders(t.Context(), "billing")
	if err != nil || len(leader) != 1 || leader[0].Term != term.Number() || !term.Valid() {
		t.Errorf("the leader is %+v, %v; want term %d, which is valid while the guard is held", leader, err, term.Number())
	}
	f.close()
	elected(t, two, "billing")
}
