package roster

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
)

// past is a source with changes of nodes.
type past struct {
	members []tenure.Member
	changes []history.NodeChange
}

func (p past) Members(context.Context) ([]tenure.Member, error) { return p.members, nil }

func (p past) Leaders(context.Context, ...string) ([]tenure.Leader, error) { return nil, nil }

func (p past) NodeHistory(context.Context, history.Query) ([]history.NodeChange, error) {
	return p.changes, nil
}

// A silent node that no other node has found dead yet is replaced, too.
func TestSilentNodeThatCameBackAndLeftIsNotDead(t *testing.T) {
	t.Parallel()
	silent := node(idD, "worker", tenure.StatusActive)
	silent.SilentFor = 11 * time.Second
	at := func(after time.Duration, status, previous string) history.NodeChange {
		return history.NodeChange{At: silent.LastHeartbeat.Add(after), Node: uuid.MustParse(idC), NodeName: "worker", Status: status, Previous: previous}
	}
	found, err := Read(t.Context(), past{[]tenure.Member{silent}, []history.NodeChange{at(time.Second, "active", ""), at(2*time.Second, "left", "active")}})
	if err != nil {
		t.Fatal(err)
	}
	if c := found.Counts(); c.Dead != 0 || c.Replaced != 1 {
		t.Errorf("%+v; want no dead node", c)
	}
}
