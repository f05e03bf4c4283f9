package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// If two operators drain a node at the same moment, both requests succeed and
// both are recorded; the change of the node names the one whose request made it
// drain.
func TestTwoOperatorsDrainOneNode(t *testing.T) {
	t.Parallel()
	people := []string{"anna", strings.Repeat("🦊", maxUser/len("🦊"))}
	tokens := map[string]string{people[0]: annasToken, people[1]: "the-token-of-many-foxes"}
	token, err := Tokens(tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, Config{Authentication: Authentication{Token: token}})
	first, _ := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	w.node("api-2", "scheduler")
	w.await("both nodes are shown", func() bool { return w.board.snapshot.now().Living == 2 })

	var all sync.WaitGroup
	for _, who := range people {
		all.Go(func() {
			body := object(map[string]any{"action": drain, "node": first.ID()})
			if response, text := w.request(http.MethodPost, "/api/actions", body, "Authorization", "Bearer "+tokens[who]); response.StatusCode != http.StatusOK {
				w.Errorf("%s: %s %s", who, response.Status, text)
			}
		})
	}
	all.Wait()
	w.await("the drain to be among the events", func() bool {
		events := get[list[eventRecord]](w, "/api/events?kind=node").Rows
		asked := slices.DeleteFunc(events, func(e eventRecord) bool { return e.Status != string(tenure.StatusDraining) })
		return len(asked) == 1 && slices.Contains(people, asked[0].By)
	})
	var recorded []string
	err = w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT array_agg(changed_by ORDER BY changed_by COLLATE \"C\") FROM {changes} WHERE action = 'drain'")).Scan(&recorded)
	if err != nil || !slices.Equal(recorded, people) {
		t.Errorf("%q are recorded (%v); want %q", recorded, err, people)
	}
	var last, by string
	err = w.pool.QueryRow(t.Context(), pgtest.SQL(w.backend, "SELECT h.changed_by, n.status_by FROM {node_history} h JOIN {nodes} n ON n.id = h.node_id WHERE h.status = 'draining'")).Scan(&by, &last)
	if err != nil || !slices.Contains(people, by) || !slices.Contains(people, last) {
		t.Errorf("the drain was asked for by %q, last by %q (%v)", by, last, err)
	}
}
