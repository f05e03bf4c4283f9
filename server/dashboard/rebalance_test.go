package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// TestOperatorRebalancesSharedRoles: shared roles move to the nodes that they prefer, with the operator as
// the requester, and the answer states what has moved. Work that does not end in time delays the moves.
func TestOperatorRebalancesSharedRoles(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)}, func(w *world) { w.Migrate("all") })
	rebalance := func(want string) {
		t.Helper()
		response, text := w.request(http.MethodPost, "/api/actions", object(map[string]any{"action": rebalanceRoles}), "Authorization", "Bearer "+annasToken)
		if response.StatusCode != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the answer is %s %s, want %s", response.Status, text, want)
		}
	}
	rebalance("No node shares roles.")

	var busy atomic.Bool // the work of a term does not end
	released := make(chan struct{})
	config := cluster.SpreadConfig{Roles: cluster.Partitions("shard", 2), MoveDelay: 50 * time.Millisecond}
	config.Roles[0].PreferredNode = "west-2"
	members := map[string]*cluster.Member{}
	for _, name := range []string{"west-1", "west-2"} {
		member, err := cluster.Join(t.Context(), w.backend, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}, cluster.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = member.Close(context.Background()) }) // the test has its results
		spread, err := member.Spread("shard", config)
		if err != nil {
			t.Fatal(err)
		}
		postgrestest.Run(t, func(ctx context.Context) error {
			return spread.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				if busy.Load() {
					<-released
				}
				return nil
			})
		})
		members[name] = member
	}
	leads := func(role string) string {
		leaders, err := w.backend.Leaders(t.Context(), role)
		if err != nil || len(leaders) != 1 {
			return ""
		}
		return leaders[0].NodeName
	}
	// misplace exchanges the roles, which keeps the shares equal. A request can come too late for a term.
	misplace := func() {
		t.Helper()
		w.await("the roles are with the wrong nodes", func() bool {
			wrong, placed := map[string]string{"shard/0": "west-1", "shard/1": "west-2"}, 0
			leaders, err := w.backend.Leaders(t.Context(), "shard/0", "shard/1")
			for _, l := range leaders {
				if l.NodeName == wrong[l.Role] {
					placed++
					continue
				}
				_ = w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: l.Role, Term: l.Term, Target: members[wrong[l.Role]].Node().ID(), By: "test"})
			}
			return err == nil && placed == 2
		})
	}
	misplace()
	rebalance("2 roles have moved.")
	if got := []string{leads("shard/0"), leads("shard/1")}; got[0] != "west-2" || got[1] != "west-1" {
		t.Errorf("after a rebalance, the roles are led by %q", got)
	}
	if by := postgrestest.Value[string](w.Installation, "SELECT coalesce(string_agg(DISTINCT ended_by, ' '), '') FROM {history} WHERE end_reason = 'handed_over' AND ended_by NOT IN ('', 'test')"); by != "anna" {
		t.Errorf("the moves were requested by %q", by)
	}
	if record := postgrestest.Value[string](w.Installation, "SELECT changed_by || ': ' || action || ' ' || kind || ': ' || detail FROM {changes}"); record != "anna: rebalance cluster: 2 roles move" {
		t.Errorf("the record is %q", record)
	}
	rebalance("Every shared role is where it should be.")

	misplace()
	busy.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	result, err := w.board.rebalance(ctx, "anna")
	if err != nil || result.String() != "Not all of 2 roles have moved yet. Requested moves continue; rebalance again for the others." {
		t.Errorf("while work continues, the result is %q, %v", result, err)
	}
	close(released)
	w.await("the requested moves continue", func() bool { return leads("shard/0") == "west-2" })
}
