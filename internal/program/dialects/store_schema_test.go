package dialects

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/store"
)

// Migrate starts from an empty database or from the library's tables.
func TestStoreMigratesConcurrently(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for from, prefix := range map[string]string{"nothing": store.DefaultPrefix, "the library's tables": libraryPrefix} {
			t.Run(k.name+" from "+from, func(t *testing.T) {
				t.Parallel()
				source := k.source(t)
				db := k.connect(t, source)
				if from != "nothing" {
					execute(t, db, libraryTables(k.dialect)...)
					execute(t, db, "INSERT INTO gemstone_election_leader (ns, updated_at) VALUES ('kept', '2026-01-02 03:04:05.000000')")
				}
				var running sync.WaitGroup
				for range 10 {
					elections := newStoreAt(t, k, k.connect(t, source), time.Hour, prefix)
					running.Go(func() {
						for range 2 {
							if err := elections.Migrate(t.Context()); err != nil {
								t.Errorf("Migrate: %v", err)
							}
						}
						if _, err := elections.Elect(t.Context(), "n", uuid.New()); err != nil {
							t.Errorf("Elect: %v", err)
						}
					})
				}
				running.Wait()
				if from != "nothing" {
					if got := value(t, db, "SELECT term FROM gemstone_election_leader WHERE ns = 'kept'"); got != "0" {
						t.Errorf("the term of a row that was there is %s", got)
					}
				}
			})
		}
	}
}

func TestStoreRefusesForeignTables(t *testing.T) {
	t.Parallel()
	for _, k := range direct {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			db := k.open(t)
			execute(t, db, "CREATE TABLE tenure_election_leader (id int)")
			elections := newStore(t, k, db, time.Hour)
			_, err := elections.Elect(t.Context(), "n", uuid.New())
			if !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "another prefix") {
				t.Errorf("%v; want ErrSchema, naming the prefix", err)
			}
			own := newStoreAt(t, k, db, time.Hour, "own_")
			if _, err := own.Elect(t.Context(), "n", uuid.New()); err != nil {
				t.Errorf("with another prefix: %v", err)
			}
		})
	}
}

// If another program stored a leader that is no UUID, the store returns an error and changes
// nothing.
func TestStoreLeavesForeignRowsAlone(t *testing.T) {
	t.Parallel()
	for _, k := range direct {
		for _, id := range []string{"worker-1", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", ""} {
			t.Run(k.name+"/"+id, func(t *testing.T) {
				t.Parallel()
				db := k.open(t)
				elections := newStore(t, k, db, time.Hour)
				if err := elections.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				execute(t, db, `INSERT INTO tenure_election_leader (ns, leader_id, lease_expires_at, updated_at)
					VALUES ('n', '`+id+`', '2001-01-01 00:00:00.000000', '2001-01-01 00:00:00.000000')`)
				a := uuid.New()
				var foreign *store.ForeignRowError
				_, err := elections.Elect(t.Context(), "n", a)
				if !errors.As(err, &foreign) || foreign.Namespace != "n" || foreign.ID != id || !errors.Is(err, tenure.ErrTenure) {
					t.Errorf("Elect: %v; want a ForeignRowError", err)
				}
				if _, err := elections.IsLeader(t.Context(), "n", a); !errors.As(err, &foreign) {
					t.Errorf("IsLeader: %v; want a ForeignRowError", err)
				}
				if got := value(t, db, "SELECT leader_id FROM tenure_election_leader WHERE term = 0"); got != id {
					t.Errorf("the row has become %q", got)
				}
				if got := value(t, db, "SELECT count(*) FROM tenure_election_candidate"); got != "0" {
					t.Errorf("%s candidates were registered", got)
				}
			})
		}
	}
}

// The library's tables on MySQL treat some different names as equal. The store
// rejects the second name instead of sharing the lease.
func TestStoreRejectsNamespacesThatWouldShareALease(t *testing.T) {
	t.Parallel()
	k := direct[2]
	db := k.open(t)
	execute(t, db, libraryTables(k.dialect)...)
	elections := newStoreAt(t, k, db, time.Hour, libraryPrefix)
	a := uuid.New()
	if _, err := elections.Elect(t.Context(), "Name", a); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"name", "Name ", "Námé"} {
		for what, try := range map[string]func() error{
			"Elect":      func() error { _, err := elections.Elect(t.Context(), namespace, uuid.New()); return err },
			"IsLeader":   func() error { _, err := elections.IsLeader(t.Context(), namespace, a); return err },
			"Candidates": func() error { _, err := elections.Candidates(t.Context(), namespace); return err },
		} {
			if err := try(); !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Errorf("%s(%q): %v; want it refused", what, namespace, err)
			}
		}
	}
	if held, err := elections.Leader(t.Context(), "Name"); err != nil || held.Holder != a || held.Term < 1 {
		t.Errorf("Leader: %+v, %v", held, err)
	}
}
