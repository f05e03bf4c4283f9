package dialects

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Term numbers increase even if the tables or the SQLite file were removed and created again.
func TestBackendNumbersGrowInTablesMadeAnew(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		a := c.join("a").campaign(backendRole)
		first := leads(t, a)
		if err := a.Node().Close(soon(t)); err != nil {
			t.Fatal(err)
		}
		backend := newBackend(t, k.connect(t, c.source), k.dialect, c.lease)
		if err := backend.MigrateDown(soon(t), 0); err != nil {
			t.Fatal(err)
		}
		b := c.join("b").campaign(backendRole)
		if second := leads(t, b); second.Number() <= first.Number() {
			t.Errorf("term %d in the new tables after %d in the old ones", second.Number(), first.Number())
		}
	})
}

// The numbers continue from the row when the database's clock has been set back.
func TestBackendNumbersGrowWhenClockStepsBack(t *testing.T) {
	t.Parallel()
	onKinds(t, kinds, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		a := c.join("a").campaign(backendRole)
		leads(t, a)
		if err := a.Shutdown(soon(t)); err != nil {
			t.Fatal(err)
		}
		ahead := time.Now().Add(time.Hour).UnixMilli()
		// Set by hand: the clock of a database is that of its machine.
		execute(t, k.connect(t, c.source), fmt.Sprintf("UPDATE tenure_lease_seats SET term = %d", ahead))
		if err := a.Start(soon(t)); err != nil {
			t.Fatal(err)
		}
		if next := leads(t, a); next.Number() != ahead+1 {
			t.Errorf("term %d follows term %d", next.Number(), ahead)
		}
	})
}

func TestStoreNumbersGrowWhenClockStepsBack(t *testing.T) {
	t.Parallel()
	for _, k := range direct {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			lead := func() int64 {
				t.Helper()
				held, err := newStore(t, k, db, time.Hour).Elect(t.Context(), "n", uuid.New())
				if err != nil {
					t.Fatal(err)
				}
				return held.Term
			}
			before := time.Now().UnixMilli()
			first := lead()
			if after := time.Now().UnixMilli(); first < before-1 || first > after+1 {
				t.Errorf("the first term is %d, began from %d to %d", first, before, after)
			}
			execute(t, db, "DROP TABLE tenure_election_candidate", "DROP TABLE tenure_election_leader")
			second := lead()
			if second <= first {
				t.Errorf("term %d in the new tables after %d in the old ones", second, first)
			}
			ahead := time.Now().Add(time.Hour).UnixMilli()
			// Set by hand: the clock of a database is that of its machine.
			execute(t, db, fmt.Sprintf("UPDATE tenure_election_leader SET term = %d, leader_id = NULL", ahead))
			if third := lead(); third != ahead+1 {
				t.Errorf("term %d follows term %d", third, ahead)
			}
		})
	}
}
