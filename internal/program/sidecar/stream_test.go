package sidecar

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/feed"
	"github.com/exactly-one/tenure/internal/program/record"
)

const inMemory = "http://node"

// TestStreamDeliversEveryEvent: a client sees every event of the node's elections, who leads
// anywhere, and the end.
func TestStreamDeliversEveryEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase()
		h := newHandler(t, Config{})
		client, _, stop := serveInMemory(t, h)
		f := follow(t, client, inMemory, "")
		node := campaign(t, db, "one", h, "billing")
		term := elected(t, node, "billing").Term()
		var elections []string // in their order, among which the change may come at any place
		var change record.Change
		for change.Role == "" || !slices.Contains(elections, "acquired ") {
			m, err := f.next()
			switch {
			case err != nil:
				t.Fatalf("after %q: %v", elections, err)
			case m.kind == kindLeader:
				change = decode[record.Change](t, m.data)
				checkSchema(t, "Change", m.data)
			default:
				e := decode[record.Event](t, m.data)
				checkSchema(t, "Event", m.data)
				elections = append(elections, fmt.Sprintf("%s %s", e.Event, e.To))
				if e.Node != node.ID() || e.Role != "billing" {
					t.Errorf("%+v", e)
				}
			}
		}
		if got := strings.Join(elections, ","); !strings.HasSuffix(got, "state_change acquiring,state_change leader,acquired ") {
			t.Errorf("the events are %s", got)
		}
		if change.Role != "billing" || change.Previous != nil || change.Leader.Term != term.Number() {
			t.Errorf("%+v", change)
		}
		other := campaign(t, db, "two", nil, "elsewhere")
		elected(t, other, "elsewhere")
		if change := decode[record.Change](t, f.expect(t, kindLeader).data); change.Role != "elsewhere" || change.Leader.NodeName != "two" {
			t.Errorf("%+v", change)
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		f.expect(t, kindEnd)
		if m, err := f.next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %+v, %v", m, err)
		}
		<-stopped
	})
}

// TestIdleStreamShowsThatNodeLives: while there is no event, a client gets a sign of life
// every 15 s, for as long as it wants, beyond the bounds on requests.
func TestIdleStreamShowsThatNodeLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		f := follow(t, client, inMemory, "")
		time.AfterFunc(time.Hour+time.Second, func() {
			h.Publish(record.Event{Event: tenure.EventAcquired, Role: "late", Time: record.Time(time.Now())})
		})
		if m := f.expect(t, kindElection); !strings.Contains(m.data, "late") {
			t.Errorf("%+v", m)
		}
		if f.pulse != 240 {
			t.Errorf("%d signs of life in an hour, want 240: one every 15 s", f.pulse)
		}
	})
}

// publish publishes events numbered from the first to the last, padded to a size.
func publish(h *Handler, first, last, size int) {
	for i := first; i <= last; i++ {
		h.Publish(record.Event{
			Event: tenure.EventError, Role: fmt.Sprint(i), Error: strings.Repeat("x", size), Time: record.Time(time.Unix(1, 0)),
		})
	}
}

// number is the number that publish gave an event.
func number(t *testing.T, m message) int {
	t.Helper()
	var i int
	if _, err := fmt.Sscan(decode[record.Event](t, m.data).Role, &i); err != nil {
		t.Fatal(err)
	}
	return i
}

// TestSlowClientLearnsHowMuchItMissed: a client that falls behind gets what it had been sent and a clear
// last event; when it comes back it learns how much it missed.
func TestSlowClientLearnsHowMuchItMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		slow, other := follow(t, client, inMemory, ""), follow(t, client, inMemory, "")
		const events = 3 * feed.MaxRetained
		for i := 1; i <= events; i++ {
			publish(h, i, i, 800)
			if got := number(t, other.expect(t, kindElection)); got != i {
				t.Fatalf("the other client sees %d instead of %d", got, i)
			}
		}
		seen := 0
		var m message
		for {
			var err error
			if m, err = slow.next(); err != nil {
				t.Fatalf("after %d events: %v", seen, err)
			}
			if m.kind != kindElection {
				break
			}
			if got := number(t, m); got != seen+1 {
				t.Fatalf("%d follows %d", got, seen)
			}
			seen++
		}
		if m.kind != kindDropped || !strings.Contains(m.data, "too slow") {
			t.Errorf("the last event is %+v", m)
		}
		if _, err := slow.next(); !errors.Is(err, io.EOF) {
			t.Errorf("after it: %v", err)
		}
		again := follow(t, client, inMemory, slow.last)
		gap := decode[gapRecord](t, again.expect(t, kindGap).data)
		first := number(t, again.expect(t, kindElection))
		if gap.Missed == nil || int(*gap.Missed) != first-1-seen {
			t.Errorf("%d seen, %+v, then %d", seen, gap, first)
		}
		for i := first + 1; i <= events; i++ {
			if got := number(t, again.expect(t, kindElection)); got != i {
				t.Fatalf("%d instead of %d", got, i)
			}
		}
	})
}

// TestLongErrorsAreShortened: an error of any length takes a bounded place in the feed,
// and stays text.
func TestLongErrorsAreShortened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		f := follow(t, client, inMemory, "")
		for _, text := range []string{strings.Repeat("é", 1<<20), strings.Repeat("a\n\x00", 1<<20)} {
			h.Publish(record.Event{Event: tenure.EventError, Role: "x", Error: text, Time: record.Time(time.Unix(1, 0))})
			if got := f.expect(t, kindElection).data; len(got) > 10*maxErrorText || strings.Contains(got, `\ufffd`) {
				t.Errorf("%d bytes: %.200s", len(got), got)
			}
		}
	})
}

// TestStalledClientIsDisconnected: a client that takes nothing at all is cut.
func TestStalledClientIsDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		_, network, _ := serveInMemory(t, h)
		conn, err := network.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(conn)
		for line := ""; !strings.HasPrefix(line, "event: hello"); {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		publish(h, 1, 100, 900)
		time.Sleep(29 * time.Second)
		if h.streams.Open() != 1 {
			t.Error("the client is cut too early")
		}
		time.Sleep(2 * time.Second)
		if h.streams.Open() != 0 {
			t.Error("the client is not cut")
		}
	})
}

// TestDisconnectedClientLeavesNothing: a client that goes leaves nothing.
func TestDisconnectedClientLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		f := follow(t, client, inMemory, "")
		f.close()
		synctest.Wait()
		if h.streams.Open() != 0 {
			t.Error("its stream continues")
		}
	})
}

// TestStreamAboveLimitIsRejected: one address has 256 streams. One more is refused until
// another one ends.
func TestStreamAboveLimitIsRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		var last *following
		for range 256 { // all of one address
			last = follow(t, client, inMemory, "")
		}
		again := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events", http.NoBody)
		again.Host, again.RemoteAddr = "localhost", "pipe" // as the address of the others is
		r := serve(t, h, again).refused(t, 503, codeTooMany)
		if r.header.Get("Retry-After") == "" {
			t.Error("it is not said when to try again")
		}
		call(t, h, "GET", "/healthz", "").want(t, 200)
		last.close()
		synctest.Wait()
		follow(t, client, inMemory, "")
	})
}

// TestLastEventIDOfAnotherFeedIsAGap: another feed's id is a gap; nonsense is refused.
func TestLastEventIDOfAnotherFeedIsAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{})
		client, _, _ := serveInMemory(t, h)
		publish(h, 1, 3, 10)
		for _, id := range []string{"aaaaaaaaaa-2", h.feed.Position(4).String(), "aaaaaaaaaa-18446744073709551615"} {
			f := follow(t, client, inMemory, id)
			if gap := decode[gapRecord](t, f.expect(t, kindGap).data); gap.Missed != nil {
				t.Errorf("%s: %+v", id, gap)
			}
			if got := number(t, f.expect(t, kindElection)); got != 1 {
				t.Errorf("%s: %d", id, got)
			}
		}
		for last, first := range map[uint64]int{0: 1, 2: 3} {
			id := h.feed.Position(last).String()
			if got := number(t, follow(t, client, inMemory, id).expect(t, kindElection)); got != first {
				t.Errorf("%s: %d", id, got)
			}
		}
		name, _, _ := strings.Cut(h.feed.Position(0).String(), "-")
		for _, id := range []string{"1", "-", "-1", "x-1", name, name + "-", name + "-+1", name + "-01", name + "--1", "aaaaaaaaaa-18446744073709551616", "AAAAAAAAAA-1"} {
			call(t, h, "GET", "/v1/events", "", "Last-Event-ID", id).refused(t, 400, codeInvalidID)
		}
		if r := call(t, h, "HEAD", "/v1/events", ""); r.status != 200 || r.body != "" {
			t.Errorf("HEAD: %+v", r)
		}
	})
}

// TestSlowRequestIsDisconnected: a client that does not send its request is cut.
func TestSlowRequestIsDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		_, network, _ := serveInMemory(t, h)
		for text, limit := range map[string]time.Duration{
			"":             headerTimeout,
			"GET /healthz": headerTimeout,
			"POST " + stepDownPath + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 9\r\n\r\n": requestTimeout,
		} {
			conn, err := network.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begun); waited > limit+time.Second {
				t.Errorf("%q: cut after %v", text, waited)
			}
			_ = conn.Close() // it is closed already
		}
	})
}

// TestLongStepDownIsAnswered: the bounds on requests do not cut an answer that waits for
// work to end.
func TestLongStepDownIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, Config{Token: newToken(t)})
		client, _, _ := serveInMemory(t, h)
		node := campaign(t, newDatabase(), "one", h, "billing")
		guard, err := elected(t, node, "billing").Guard()
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(29*time.Second, guard.Done)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, inMemory+stepDownPath, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", authorized[1])
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s", response.Status)
		}
	})
}
