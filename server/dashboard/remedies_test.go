package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// An operator skips the event at which a processor has stopped, rewinds the processor, and
// forgets a dead node. Each action is in the audit; a viewer can do none of them.
func TestOperatorsRemedyWhatTheBannerShows(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)}, func(w *world) { w.Migrate("all") })
	node, _ := w.node("api-1")
	w.stopAtAnEvent(node)
	wire, gone := w.wiredNode("api-2", 10*time.Second)
	w.AwaitWatched(gone.ID())

	failing := ""
	w.await("the processor has stopped", func() bool {
		w.board.audience.attend(t.Context()) // as a request does
		all := w.board.snapshot.workNow().Processors
		if len(all) != 1 || all[0].Status != "failed" || all[0].Failing == nil {
			return false
		}
		failing = *all[0].Failing
		return true
	})
	act := func(token string, pairs map[string]any) (int, string) {
		t.Helper()
		response, text := w.request(http.MethodPost, "/api/actions", object(pairs), "Authorization", "Bearer "+token)
		return response.StatusCode, text
	}
	skip := map[string]any{"action": skipEvent, "name": "webhooks", "event": failing}
	rewind := map[string]any{"action": rewindProcessor, "name": "webhooks", "event": "0:0"}
	forget := map[string]any{"action": forgetNode, "node": gone.ID()}
	for _, pairs := range []map[string]any{skip, rewind, forget, {"action": unsilenceAlert, "name": "down"}} {
		if status, text := act(violasToken, pairs); status != http.StatusForbidden {
			t.Errorf("a viewer's %v: %d %s, want 403", pairs["action"], status, text)
		}
	}
	for what, c := range map[string]struct {
		pairs  map[string]any
		status int
	}{
		"skipping no event":           {map[string]any{"action": skipEvent, "name": "webhooks", "event": "0:0"}, http.StatusConflict},
		"skipping another event":      {map[string]any{"action": skipEvent, "name": "webhooks", "event": "1:1"}, http.StatusConflict},
		"rewinding to nothing":        {map[string]any{"action": rewindProcessor, "name": "webhooks", "event": "x"}, http.StatusConflict},
		"rewinding what is not there": {map[string]any{"action": rewindProcessor, "name": "unknown", "event": "0:0"}, http.StatusNotFound},
		"forgetting a live node":      {forget, http.StatusConflict},
	} {
		if status, text := act(annasToken, c.pairs); status != c.status {
			t.Errorf("%s: %d %s, want %d", what, status, text, c.status)
		}
	}
	if status, text := act(annasToken, skip); status != http.StatusOK || !strings.Contains(text, "is skipped") {
		t.Errorf("skipping: %d %s", status, text)
	}
	admin := processor.NewAdmin(w.backend, w.pool)
	w.await("the others are handled", func() bool {
		s, err := admin.Show(t.Context(), "webhooks")
		return err == nil && s.Status == processor.Active && s.Processed == 2 && s.Skipped == 1
	})
	if status, text := act(annasToken, rewind); status != http.StatusOK || !strings.Contains(text, "continues after the start of the log") {
		t.Errorf("rewinding: %d %s", status, text)
	}
	if err := wire.Close(); err != nil {
		t.Fatal(err)
	}
	w.await("api-2 is dead", func() bool { w.board.audience.attend(t.Context()); return w.board.snapshot.isDead(gone.ID()) })
	if status, text := act(annasToken, forget); status != http.StatusOK || !strings.Contains(text, "is forgotten") {
		t.Errorf("forgetting: %d %s", status, text)
	}
	w.await("it is gone from the list", func() bool {
		return get[list[nodeRecord]](w, "/api/nodes?search=api-2", "Authorization", "Bearer "+annasToken).Total == 0
	})
	var done []string
	w.await("the audit has all of it", func() bool {
		done = nil
		for _, e := range get[list[auditRecord]](w, "/api/audit", "Authorization", "Bearer "+annasToken).Rows {
			done = append(done, fmt.Sprintf("%s: %s %s %s, %s", e.By, e.Action, e.Kind, e.Name, e.Result))
		}
		return len(done) >= 3
	})
	for _, want := range []string{"anna: skip processor webhooks, done", "anna: rewind processor webhooks, done", "anna: forget node api-2, done"} {
		if !slices.Contains(done, want) {
			t.Errorf("the audit is %q, want %q in it", done, want)
		}
	}
}

// stopAtAnEvent runs a processor that stops at the second of three events.
func (w *world) stopAtAnEvent(node *tenure.Node) {
	w.Helper()
	store := eventstore.New(w.backend, eventstore.Config{})
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), w.pool, processor.GroupConfig{})
	if err != nil {
		w.Fatal(err)
	}
	err = group.Add(processor.Config{
		Name: "webhooks", Kind: "outbox", Log: store.Log(), MaxAttempts: 3, Retry: retry.FixedInterval{Interval: 20 * time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			for i, event := range batch {
				if event.Type == "refused" {
					return i, errors.New("the receiver answered 400")
				}
			}
			return len(batch), nil
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	postgrestest.Run(w, group.Run)
	events := []eventstore.NewEvent{{Type: "sent", Data: 1}, {Type: "refused", Data: 2}, {Type: "sent", Data: 3}}
	if err := store.Append(w.Context(), w.pool, events...); err != nil {
		w.Fatal(err)
	}
}

// A silence that was made on the page is ended on it.
func TestUnsilenceReachesTheHook(t *testing.T) {
	t.Parallel()
	var got AlertRequest
	w := newWorld(t, Config{Authentication: authentication(t), HandleAlert: func(_ context.Context, r AlertRequest) error {
		got = r
		return map[bool]error{true: ErrNoAlert}[r.Name == "up"]
	}})
	for name, want := range map[string]int{"up": http.StatusConflict, "down": http.StatusOK} {
		body := object(map[string]any{"action": unsilenceAlert, "name": name, "labels": map[string]string{"role": "r"}})
		if response, text := w.request(http.MethodPost, "/api/actions", body, "Authorization", "Bearer "+annasToken); response.StatusCode != want {
			t.Errorf("%s: %s %s, want %d", name, response.Status, text, want)
		}
		if !got.Unsilence || got.Acknowledge || got.Name != name || got.Labels["role"] != "r" || got.By != "anna" {
			t.Errorf("the request is %+v", got)
		}
	}
}
