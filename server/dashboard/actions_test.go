package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

// TestActionsEndShownTermOnly: a step-down or hand-over that was confirmed for a leader does
// not end the term of the next one.
func TestActionsEndShownTermOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)})
	first, stop := w.node("api-1", "scheduler")
	shown := w.led("scheduler", "api-1")
	second, _ := w.node("api-2", "scheduler")
	stop()
	present := w.led("scheduler", "api-2")
	third, _ := w.node("api-3", "scheduler")
	w.await("all living nodes are shown", func() bool { return w.board.snapshot.now().Living == 2 })

	anna := []string{"Authorization", "Bearer " + annasToken}
	for action, target := range map[string]*tenure.Node{stepDown: first, handOver: third} {
		body := map[string]any{"action": action, "name": "scheduler", "term": shown.Term, "node": target.ID()}
		response, text := w.request(http.MethodPost, "/api/actions", object(body), anna...)
		if response.StatusCode != http.StatusConflict || !strings.Contains(text, "of the role is over") {
			t.Errorf("%s of a term that is over: %s %s", action, response.Status, text)
		}
	}
	if role := w.role("scheduler"); role.Term != present.Term || role.Node != second.ID() {
		t.Errorf("the present leader was %+v, and is %+v", present, role)
	}
	body := map[string]any{"action": handOver, "name": "scheduler", "term": present.Term, "node": third.ID()}
	if response, text := w.request(http.MethodPost, "/api/actions", object(body), anna...); response.StatusCode != http.StatusOK || !strings.Contains(text, "leads now") {
		t.Errorf("a hand-over of the present term: %s %s", response.Status, text)
	}
}
