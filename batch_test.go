package tenure_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/exactly-one/tenure"
)

// batches is a database that records how many roles each attempt has. It answers no
// attempt before started is closed.
type batches struct {
	*database
	started chan struct{}
	lock    sync.Mutex
	roles   []int
}

func (b *batches) Open(ctx context.Context, options tenure.SessionOptions) (tenure.Session, error) {
	s, err := b.database.Open(ctx, options)
	return &batchSession{s, b}, err
}

type batchSession struct {
	tenure.Session
	batches *batches
}

func (s *batchSession) TryAcquire(requests []tenure.AcquireRequest) ([]tenure.AcquireResult, error) {
	<-s.batches.started
	s.batches.lock.Lock()
	s.batches.roles = append(s.batches.roles, len(requests))
	s.batches.lock.Unlock()
	return s.Session.TryAcquire(requests)
}

func TestAttemptsHaveAtMostThousandRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &batches{database: newDatabase(), started: make(chan struct{})}
		node := open(t, db)
		elections := make([]*tenure.Election, 2500)
		for i := range elections {
			e, err := node.Election(tenure.NamedRole(fmt.Sprint("role ", i)))
			if err == nil {
				err = e.Start(context.WithoutCancel(t.Context()))
			}
			if err != nil {
				t.Fatal(err)
			}
			elections[i] = e
		}
		close(db.started)
		for _, e := range elections {
			if _, err := e.WaitForLeadership(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		db.lock.Lock()
		most := 0
		for _, n := range db.roles {
			most = max(most, n)
		}
		db.lock.Unlock()
		if most != 1000 {
			t.Errorf("an attempt has up to %d roles, want 1000", most)
		}
		closeNode(t, node)
	})
}
