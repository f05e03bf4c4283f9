package dashboard

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAlertActionsReachTheHook: a user that may act silences and acknowledges alerts under
// the own name; others and invalid requests change nothing.
func TestAlertActionsReachTheHook(t *testing.T) {
	t.Parallel()
	var (
		mu   sync.Mutex
		got  []AlertRequest
		fail error
	)
	w := newWorld(t, Config{Authentication: authentication(t), HandleAlert: func(_ context.Context, r AlertRequest) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r)
		return fail
	}})
	act := func(body map[string]any, header ...string) (int, string) {
		t.Helper()
		response, text := w.request(http.MethodPost, "/api/actions", object(body), header...)
		return response.StatusCode, text
	}
	anna := []string{"Authorization", "Bearer " + annasToken}
	silence := map[string]any{"action": silenceAlert, "name": "down", "labels": map[string]string{"role": "r"}, "seconds": 3600, "comment": "a move"}
	if status, text := act(silence, anna...); status != http.StatusOK || !strings.Contains(text, "is silenced.") {
		t.Errorf("silencing: %d %s", status, text)
	}
	if status, text := act(map[string]any{"action": acknowledgeAlert, "name": "down", "seconds": 60}, anna...); status != http.StatusOK || !strings.Contains(text, "is acknowledged.") {
		t.Errorf("acknowledging: %d %s", status, text)
	}
	for what, body := range map[string]map[string]any{
		"no time":       {"action": silenceAlert, "name": "down"},
		"a short time":  {"action": acknowledgeAlert, "name": "down", "seconds": 59},
		"a time beyond": {"action": silenceAlert, "name": "down", "seconds": 365*24*3600 + 1},
	} {
		if status, text := act(body, anna...); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if status, text := act(silence); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, text)
	}
	want := []AlertRequest{
		{Name: "down", Labels: map[string]string{"role": "r"}, For: time.Hour, Comment: "a move", By: "anna"},
		{Acknowledge: true, Name: "down", For: time.Minute, By: "anna"},
	}
	mu.Lock()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the requests are %+v; want %+v", got, want)
	}
	fail = ErrNoAlert
	mu.Unlock()
	if status, text := act(silence, anna...); status != http.StatusConflict || !strings.Contains(text, "no such alert fires") {
		t.Errorf("of an alert that does not fire: %d %s", status, text)
	}
	if events := get[list[eventRecord]](w, "/api/events?kind=action"); events.Total != 2 || events.Rows[1].Detail != "down" || events.Rows[1].By != "anna" {
		t.Errorf("the events are %+v", events.Rows)
	}
	other := newWorld(t, Config{Authentication: authentication(t)})
	if response, text := other.request(http.MethodPost, "/api/actions", object(silence), anna...); response.StatusCode != http.StatusNotFound {
		t.Errorf("without a hook: %s %s", response.Status, text)
	}
}
