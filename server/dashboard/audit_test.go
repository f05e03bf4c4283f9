package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/audit"
)

// TestAuditListsWhoDidWhat: step-downs, hand-overs and drains are listed once with their
// requesters, whatever their kind; so are changes, and a request without effect as such.
func TestAuditListsWhoDidWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)})
	one, _ := w.node("one", "billing", "reports")
	w.led("billing", "one")
	w.led("reports", "one")
	two, _ := w.node("two", "billing", "reports")
	w.await("two is known", func() bool { return w.board.snapshot.nodeName(two.ID()) == "two" })
	rows := func() (texts []string) {
		page := get[list[auditRecord]](w, "/api/audit")
		for _, r := range page.Rows {
			texts = append(texts, fmt.Sprintf("%s: %s %s %s, %s", r.By, r.Action, r.Kind, r.Name, r.Result))
		}
		slices.Sort(texts)
		return texts
	}
	want := func(what string, texts ...string) {
		t.Helper()
		w.await(what, func() bool { return slices.Equal(rows(), texts) })
	}
	// By the page, which records the request too.
	act := object(map[string]any{"action": "hand_over", "name": "billing", "node": two.ID()})
	if response, text := w.request(http.MethodPost, "/api/actions", act, "Authorization", "Bearer "+annasToken); response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", response.Status, text)
	}
	w.led("billing", "two")
	want("the hand-over", "anna: hand_over role billing, done")
	// By another program.
	if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: one.ID(), By: "otto"}); err != nil {
		t.Fatal(err)
	}
	w.led("reports", "two")
	want("the drain without the terms of the node", "anna: hand_over role billing, done", "otto: drain node one, done")
	if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestUndrain, Node: one.ID(), By: "otto"}); err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO {changes} (changed_by, kind, name, action) VALUES ('anna', 'role', 'billing', 'step_down'), ('anna', 'node', $1, 'drain'), ('cleo', 'schedule', 'backup', 'pause')`, two.ID().String())
	want("requests without effect", "anna: drain node two, requested", "anna: hand_over role billing, done", "anna: step_down role billing, requested",
		"cleo: pause schedule backup, done", "otto: drain node one, done", "otto: undrain node one, done")
	if page := get[list[auditRecord]](w, "/api/audit?search=CLEO"); page.Total != 1 || page.Rows[0].By != "cleo" {
		t.Errorf("a search: %+v", page)
	}
	if page := get[list[auditRecord]](w, "/api/audit?offset=1&limit=1"); page.Total != 6 || len(page.Rows) != 1 || page.Rows[0].Number != 5 {
		t.Errorf("a page: %+v", page)
	}
}

// TestAuditReadsOnceForAllViewers: however many viewers ask at the same time, the database
// is read once in two seconds, also after a failure.
func TestAuditReadsOnceForAllViewers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, failure := 0, errors.New("down")
		l := &auditLog{turn: make(chan struct{}, 1), read: func(context.Context) ([]audit.Entry, error) {
			reads++
			time.Sleep(time.Second) // of the test's own clock
			return nil, failure
		}}
		ask := func(want int) {
			t.Helper()
			var group sync.WaitGroup
			for range 100 {
				group.Go(func() {
					if _, err := l.latest(t.Context()); !errors.Is(err, failure) {
						t.Errorf("got %v, want %v", err, failure)
					}
				})
			}
			group.Wait()
			if reads != want {
				t.Errorf("%d reads, want %d", reads, want)
			}
		}
		ask(1)
		ask(1)
		time.Sleep(auditAge)
		failure = nil
		ask(2)
	})
}
