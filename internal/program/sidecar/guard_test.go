package sidecar

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
)

const (
	guardsPath = "/v1/roles/billing/guards"
	piece      = `{"at_most_seconds":1}`
)

// settled is the configuration of a node that grants guards.
func settled(name string) tenure.Config {
	return tenure.Config{Name: name, Settle: 5200 * time.Millisecond}
}

// hold requests a guard over the wire and returns the open response.
func hold(t *testing.T, client *http.Client, base, body string) *following {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+guardsPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(authorized); i += 2 {
		r.Header.Set(authorized[i], authorized[i+1])
	}
	response, err := client.Do(r) //nolint:bodyclose // close closes it
	if err != nil {
		t.Fatal(err)
	}
	f := &following{&reader{lines: bufio.NewReader(response.Body)}, response.Body}
	t.Cleanup(f.close)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the guard: got %s, %v; want 200 with events", response.Status, response.Header)
	}
	return f
}

// stepDownTakes sends a step-down and returns a channel for how long it took.
func stepDownTakes(t *testing.T, h *Handler) <-chan time.Duration {
	t.Helper()
	took, begun := make(chan time.Duration, 1), time.Now()
	go func() {
		call(t, h, "POST", stepDownPath, "", authorized...)
		took <- time.Since(begun)
	}()
	return took
}

// TestGuardKeepsRoleUntilClientCloses: a step-down waits for a piece of work whose client
// has a guard. The client learns of it, and no more guards are granted.
func TestGuardKeepsRoleUntilClientCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{Token: newToken(t)})
		client, _, _ := serveInMemory(t, h)
		one := campaignWith(t, db, settled("one"), h, "billing")
		term := elected(t, one, "billing").Term()
		other := campaign(t, db, "two", nil, "billing")

		f := hold(t, client, inMemory, `{"at_most_seconds":5}`)
		held := decode[guardRecord](t, f.expect(t, kindGuard).data)
		if held.Role != "billing" || held.Term != term.Number() || held.Node != one.ID() || held.NodeName != "one" || held.AtMostSeconds != 5 || held.RemainingSeconds < 5 {
			t.Errorf("the guard is %+v, want one of term %d of %s", held, term.Number(), one.ID())
		}
		took := stepDownTakes(t, h)
		time.Sleep(3 * time.Second) // of the bubble: the piece of work
		if !term.Valid() {
			t.Error("the term has ended while a client holds a guard")
		}
		call(t, h, "POST", guardsPath, piece, authorized...).refused(t, 409, codeNotLeader)
		f.expect(t, kindStopping)
		f.close()
		if got := <-took; got != 3*time.Second {
			t.Errorf("the step-down took %v, want 3s: until the client had closed the guard", got)
		}
		elected(t, other, "billing")
	})
}

// TestGuardEndsAfterDeclaredTime: a client that does not end its guard delays a step-down for
// as long as it has declared, whether or not it reads.
func TestGuardEndsAfterDeclaredTime(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(t, Config{Token: newToken(t)})
			client, network, _ := serveInMemory(t, h)
			node := campaignWith(t, newDatabase(), settled("one"), h, "billing")
			elected(t, node, "billing")
			var f *following
			if reads {
				f = hold(t, client, inMemory, `{"at_most_seconds":5}`)
				f.expect(t, kindGuard)
			} else {
				conn, err := network.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				body := `{"at_most_seconds":5}`
				request := "POST " + guardsPath + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret +
					"\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n" + body
				if _, err := io.WriteString(conn, request); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			took := stepDownTakes(t, h)
			if reads {
				f.expect(t, kindStopping)
				f.expect(t, kindEnd)
				if m, err := f.next(); !errors.Is(err, io.EOF) {
					t.Errorf("after the end: got %+v, %v; want EOF", m, err)
				}
			}
			if got := <-took; got != 5*time.Second {
				t.Errorf("the step-down took %v, want the 5s that the client had declared (it reads: %t)", got, reads)
			}
		})
	}
}

// TestGuardShowsEndOfTrust: the response of a guard says that trust in the term has ended.
func TestGuardShowsEndOfTrust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{Token: newToken(t)})
		client, _, _ := serveInMemory(t, h)
		node := campaignWith(t, db, settled("one"), h, "billing")
		term := elected(t, node, "billing").Term()
		f := hold(t, client, inMemory, `{"at_most_seconds":5}`)
		f.expect(t, kindGuard)
		db.Revoke(tenure.NamedRole("billing"))
		begun := time.Now()
		f.expect(t, kindEnded)
		if got := time.Since(begun); term.Valid() || got > time.Second {
			t.Errorf("the end of trust was sent after %v, with the term valid: %t; want at most 1s, with an ended term", got, term.Valid())
		}
		f.close()
	})
}

// TestPieceThatOutlastsSettleIsRefused: a guard is granted only for a piece of work that ends
// before the next term even if this node dies or loses its database.
func TestPieceThatOutlastsSettleIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		settle, lease time.Duration
		seconds, flag string
	}{
		{"as long as the settle time less 200 ms", 5200 * time.Millisecond, 0, "5", ""},
		{"longer", 5200 * time.Millisecond, 0, "5.001", "--settle"},
		{"without a settle time", 0, 0, "0.001", "--settle"},
		{"as long as the trust window after a late heartbeat", time.Hour, 30 * time.Second, "17", ""},
		{"longer than it", time.Hour, 30 * time.Second, "17.001", "--lease"},
		{"longer than any time", time.Hour, 0, "1e300", "--settle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(t, Config{Token: newToken(t)})
				node := campaignWith(t, newDatabase(), tenure.Config{Name: "one", Settle: c.settle, Lease: c.lease}, h, "billing")
				elected(t, node, "billing")
				seen := call(t, h, "POST", guardsPath, `{"at_most_seconds":`+c.seconds+`}`, authorized...)
				if c.flag == "" {
					seen.want(t, 200)
					return
				}
				if seen.refused(t, 422, codeTooLong); !strings.Contains(seen.body, c.flag+" ") {
					t.Errorf("the refusal is %s, want it to name %s", seen.body, c.flag)
				}
			})
		})
	}
}

// TestPieceThatOutlastsTrustIsRefused: while heartbeats are not acknowledged, a guard is
// granted only for a piece of work that fits into the rest of the trust window.
func TestPieceThatOutlastsTrustIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{Token: newToken(t)})
		node := campaignWith(t, db, settled("one"), h, "billing")
		term := elected(t, node, "billing").Term()
		defer db.Silence(tenure.NamedRole("billing"))()
		time.Sleep(6 * time.Second) // of the bubble
		if left := term.Remaining(); left <= time.Second || left >= 5*time.Second {
			t.Fatalf("%v of the trust window are left, want between 1s and 5s", left)
		}
		call(t, h, "POST", guardsPath, `{"at_most_seconds":5}`, authorized...).refused(t, 409, codeLate)
		call(t, h, "POST", guardsPath, piece, authorized...).want(t, 200)
	})
}

// TestGuardsAreRefused lists the other refusals.
func TestGuardsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h, standby := newHandler(t, Config{Token: newToken(t)}), newHandler(t, Config{Token: newToken(t)})
		node := campaignWith(t, db, settled("one"), h, "billing")
		elected(t, node, "billing")
		campaignWith(t, db, settled("two"), standby, "billing")
		for _, body := range []string{"", "{}", `{"at_most_seconds":0}`, `{"at_most_seconds":-1}`, `{"at_most_seconds":"1"}`} {
			call(t, h, "POST", guardsPath, body, authorized...).refused(t, 400, codeInvalidBody)
		}
		call(t, h, "POST", guardsPath, piece).refused(t, 401, codeUnauthorized)
		call(t, standby, "POST", guardsPath, piece, authorized...).refused(t, 409, codeNotLeader)
		call(t, h, "POST", guardsPath, `{"at_most_seconds":1,"term":1}`, authorized...).refused(t, 409, codeNotLeader)
		var releases []func()
		for range eachGuards {
			release, _ := h.guards.Take("192.0.2.1") // of the request
			releases = append(releases, release)
		}
		call(t, h, "POST", guardsPath, piece, authorized...).refused(t, 503, codeManyGuards)
		for _, release := range releases {
			release()
		}
		call(t, h, "POST", guardsPath, piece, authorized...).want(t, 200)
		begun := time.Now()
		call(t, h, "POST", stepDownPath, "", authorized...).want(t, 200)
		if got := time.Since(begun); got != 0 {
			t.Errorf("the step-down took %v, want no delay by refused guards", got)
		}
	})
}

// TestGuardOfEvictedConnectionLasts: the server closes the connection of a guard in favor of
// another one. The client may still work, so that the guard lasts as long as declared.
func TestGuardOfEvictedConnectionLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		network := newPipes()
		serveOn(t, limit(network, 1), h, nil)
		transport := &http.Transport{DialContext: network.dial}
		defer transport.CloseIdleConnections()
		node := campaignWith(t, newDatabase(), settled("one"), h, "billing")
		elected(t, node, "billing")
		f := hold(t, &http.Client{Transport: transport}, inMemory, `{"at_most_seconds":5}`)
		f.expect(t, kindGuard)
		other, err := network.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if m, err := f.next(); err == nil {
			t.Fatalf("the connection is open (%+v), want it closed for another one", m)
		}
		if got := <-stepDownTakes(t, h); got != 5*time.Second {
			t.Errorf("the step-down took %v, want the 5s that the client had declared", got)
		}
	})
}

// TestGuardOutlastsBoundsOnRequests: a guard lasts for longer than a request may take to
// arrive and a response to be taken, with a sign of life every second.
func TestGuardOutlastsBoundsOnRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		client, _, _ := serveInMemory(t, h)
		node := campaignWith(t, newDatabase(), tenure.Config{Name: "one", Lease: 5 * time.Minute, Settle: 5 * time.Minute}, h, "billing")
		elected(t, node, "billing")
		begun := time.Now()
		f := hold(t, client, inMemory, `{"at_most_seconds":100}`)
		f.expect(t, kindGuard)
		f.expect(t, kindEnd)
		if got := time.Since(begun); got != 100*time.Second {
			t.Errorf("the guard lasted %v, want the 100s that were declared", got)
		}
		if f.pulse != 99 {
			t.Errorf("%d signs of life, want 99: one every second", f.pulse)
		}
	})
}

// TestGuardOverTLSEndsWithItsRequest: with both versions of HTTP, a step-down waits until the
// client closes the request.
func TestGuardOverTLSEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	files := newFiles(t)
	cert, key := keyPair(t, "one")
	files.write(t, cert, key)
	certificate, err := OpenCertificate(files.cert, files.key, silent)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, Config{Token: newToken(t), Hosts: []string{"one"}})
	listener, err := Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, listener, h, certificate)
	node := campaignWith(t, newDatabase(), tenure.Config{Name: "one", Lease: time.Minute, Settle: time.Minute}, h, "billing")
	for _, version2 := range []bool{false, true} {
		term := elected(t, node, "billing").Term()
		client, closeIdle := tlsClient(t, listener.Addr(), "one", cert, version2)
		f := hold(t, client, "https://one", `{"at_most_seconds":30}`)
		f.expect(t, kindGuard)
		took := stepDownTakes(t, h)
		f.expect(t, kindStopping)
		if !term.Valid() {
			t.Errorf("the term has ended while a client holds a guard (HTTP/2: %t)", version2)
		}
		f.close()
		if got := <-took; got > 20*time.Second {
			t.Errorf("the step-down took %v, want it to end when the client closes the request (HTTP/2: %t)", got, version2)
		}
		closeIdle()
	}
}
