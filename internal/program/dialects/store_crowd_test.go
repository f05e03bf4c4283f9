package dialects

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease/store"
)

// A crowd is this many connections, in one pool for each simulated process.
const (
	crowdPools = 8
	crowdEach  = 25
)

// crowdSource returns an empty database on a server that allows enough connections.
func crowdSource(t *testing.T, k kind) string {
	t.Helper()
	room := map[string]string{"max_connections": "300"}
	switch k.name {
	case "PostgreSQL":
		return pgtest.Start(t, pgtest.Options{Settings: room}).Database(t)
	case "MariaDB":
		server := mariatest.Start(t, mariatest.Options{Settings: room})
		return server.DSN(server.Database(t)) + "?interpolateParams=true"
	default:
		return k.source(t)
	}
}

// crowd opens all connections of a crowd and returns a store for each pool.
func crowd(t *testing.T, k kind, source string) []*store.Store {
	t.Helper()
	stores := make([]*store.Store, crowdPools)
	for i := range stores {
		db := k.connect(t, source)
		db.SetMaxOpenConns(crowdEach)
		db.SetMaxIdleConns(crowdEach)
		conns := make([]*sql.Conn, crowdEach)
		for j := range conns {
			var err error
			if conns[j], err = db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, conn := range conns {
			if err := conn.Close(); err != nil { // back into the pool
				t.Fatal(err)
			}
		}
		if open := db.Stats().OpenConnections; open != crowdEach {
			t.Fatalf("%d connections are open, want %d", open, crowdEach)
		}
		stores[i] = newStore(t, k, db, time.Hour)
	}
	return stores
}

// Two hundred connections elect concurrently, for a new lease and for an expired one.
// Exactly one wins, and all get the same result. With the race detector, SQLite makes
// fewer rounds.
func TestStoreCrowdHasOneWinner(t *testing.T) {
	pgtest.Long(t)
	for _, k := range direct {
		t.Run(k.name, func(t *testing.T) {
			rounds := 100
			if raceDetector && k.name == "SQLite" {
				rounds = 20
			}
			source := crowdSource(t, k)
			db := k.connect(t, source)
			stores := crowd(t, k, source)
			for round := range rounds {
				namespace := fmt.Sprintf("round-%d", round)
				last := int64(0)
				if round%2 == 1 {
					held, err := stores[0].Elect(t.Context(), namespace, uuid.New())
					if err != nil {
						t.Fatal(err)
					}
					last = held.Term
					execute(t, db, "UPDATE tenure_election_leader SET lease_expires_at = '2001-01-01 00:00:00.000000' WHERE ns = '"+namespace+"'")
				}
				electCrowd(t, stores, namespace, last)
			}
		})
	}
}

func electCrowd(t *testing.T, stores []*store.Store, namespace string, last int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ids := make([]uuid.UUID, crowdPools*crowdEach)
	leases := make([]store.Lease, len(ids))
	begin := make(chan struct{})
	var running sync.WaitGroup
	for i := range ids {
		ids[i] = uuid.New()
		running.Go(func() {
			<-begin
			var err error
			if leases[i], err = stores[i%len(stores)].Elect(ctx, namespace, ids[i]); err != nil {
				t.Errorf("%s: %v", namespace, err)
			}
		})
	}
	close(begin)
	running.Wait()
	winners := 0
	for i, held := range leases {
		if held.Holder == ids[i] {
			winners++
		}
		if held.Holder != leases[0].Holder || held.Term != leases[0].Term || held.Term <= last {
			t.Fatalf("%s: one got %+v, another %+v; want one term, after %d", namespace, held, leases[0], last)
		}
	}
	if winners != 1 {
		t.Fatalf("%s: %d winners", namespace, winners)
	}
}
