package dialects

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/lease/store"
	"github.com/exactly-one/tenure/postgres"
)

// Migrate detects a table of another program with the name of one of the backend's tables.
func TestBackendRefusesForeignTables(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		for _, table := range []string{"sessions", "seats", "history", "requests"} {
			db := k.open(t)
			execute(t, db, "CREATE TABLE tenure_lease_"+table+" (role varchar(255), term bigint, node_id varchar(36))")
			backend := newBackend(t, db, k.dialect, lease.Config{})
			if err := backend.Migrate(soon(t)); !errors.Is(err, dberr.ErrSchema) {
				t.Errorf("a foreign table %s: %v; want ErrSchema", table, err)
			}
			if version, err := backend.SchemaVersion(soon(t)); version != 0 || err != nil {
				t.Errorf("after a refusal the version is %d, %v; want 0", version, err)
			}
		}
	})
}

// Sessions with the prefix of leases would share a table with them. The one that comes
// second fails with an error that says what to do.
func TestSessionsWithPrefixOfLeasesAreRefused(t *testing.T) {
	t.Parallel()
	for _, sessionsFirst := range []bool{true, false} {
		source := postgreSQL(t)
		db, err := postgres.New(source, postgres.Config{Schema: "public", Prefix: lease.DefaultPrefix})
		if err != nil {
			t.Fatal(err)
		}
		leases := newBackend(t, kinds[0].connect(t, source), lease.PostgreSQL, lease.Config{Schema: "public"})
		var first, second error
		if sessionsFirst {
			first, second = db.Migrate(soon(t)), leases.Migrate(soon(t))
		} else {
			first, second = leases.Migrate(soon(t)), db.Migrate(soon(t))
		}
		if first != nil || !errors.Is(second, dberr.ErrSchema) || !strings.Contains(second.Error(), "choose another prefix") {
			t.Errorf("sessions first: %t: %v, then %v; want ErrSchema and the advice for the second only", sessionsFirst, first, second)
		}
		t.Log(second)
	}
}

// A store and a backend with the same prefix have no common table and do not affect each
// other.
func TestStoreAndBackendShareNoTable(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		c := newCluster(t, k)
		db := k.connect(t, c.source)
		elections, err := store.New(db, k.dialect, store.Config{
			Prefix: lease.DefaultPrefix, Window: time.Minute, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		id := uuid.New()
		held, err := elections.Elect(soon(t), backendRole, id)
		if err != nil || held.Holder != id {
			t.Fatalf("the store elects %v, %v; want %v", held.Holder, err, id)
		}
		term := leads(t, c.join("a").campaign(backendRole))
		if held, err := elections.Elect(soon(t), backendRole, id); err != nil || held.Holder != id || !term.Valid() {
			t.Errorf("then the store has %v, %v, and the term is valid: %t; want both", held.Holder, err, term.Valid())
		}
	})
}

// A store cannot distinguish two processes with the same candidate id: both lead the same
// term, and either one can release the lease.
func TestStoreCandidateIDInTwoProcessesLeadsInBoth(t *testing.T) {
	t.Parallel()
	onKinds(t, direct, func(t *testing.T, k kind) {
		source := k.source(t)
		old, young := newStore(t, k, k.connect(t, source), time.Minute), newStore(t, k, k.connect(t, source), time.Minute)
		id := uuid.New()
		was, err := old.Elect(soon(t), "n", id)
		if err != nil {
			t.Fatal(err)
		}
		is, err := young.Elect(soon(t), "n", id)
		if err != nil || is.Holder != was.Holder || is.Term != was.Term {
			t.Errorf("the second process has %+v, %v; want the first's %+v", is, err, was)
		}
		if err := old.Unregister(soon(t), "n", id); err != nil {
			t.Fatal(err)
		}
		if led, err := young.IsLeader(soon(t), "n", id); err != nil || led {
			t.Errorf("after the first process left, the second leads: %t, %v", led, err)
		}
	})
}
