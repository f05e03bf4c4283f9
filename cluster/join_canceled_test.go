package cluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// canceled is a store whose user gives up while a node reads the registry for the first time.
type canceled struct {
	*postgres.Backend
	giveUp context.CancelFunc
}

func (c *canceled) Open(ctx context.Context, opening tenure.SessionOptions) (tenure.Session, error) {
	session, err := c.Backend.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	return &canceledSession{session.(registrySession), c.giveUp}, nil
}

type canceledSession struct {
	registrySession
	giveUp context.CancelFunc
}

func (s *canceledSession) Members() ([]tenure.Member, error) {
	s.giveUp()
	return s.registrySession.Members()
}

// A node that is asked to end while it joins leaves: no other node finds it dead.
func TestNodeThatIsCanceledWhileItJoinsLeaves(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := cluster.Join(ctx, &canceled{s.store(), cancel}, quiet("a"), cluster.Config{Address: "127.0.0.1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Join: %v; want that it was canceled", err)
	}
	conn := pgtest.Conn(t, s.dsn)
	if left := pgtest.Value[int](t, conn, "SELECT count(*) FROM "+s.table("nodes")); left != 0 {
		t.Errorf("%d nodes are left in the registry", left)
	}
	if left := pgtest.Value[bool](t, conn, "SELECT bool_or(status = 'left') FROM "+s.table("node_history")); !left {
		t.Error("the history does not say that the node left")
	}
}
