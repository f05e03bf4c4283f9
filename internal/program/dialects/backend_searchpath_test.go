package dialects

import (
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/lease/store"
)

// withSearchPath returns a source whose connections have one schema in their search path.
func withSearchPath(t *testing.T, source, schema string) string {
	t.Helper()
	parsed, err := url.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("search_path", schema)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// Nodes whose connections have different search paths belong to one installation.
func TestBackendIgnoresSearchPath(t *testing.T) {
	t.Parallel()
	c := newCluster(t, kinds[0])
	db := kinds[0].connect(t, c.source)
	execute(t, db, "CREATE SCHEMA one", "CREATE SCHEMA two")
	plain := c.source
	leads(t, c.join("plain").campaign(backendRole))
	for _, schema := range []string{"one", "two"} {
		c.source = withSearchPath(t, plain, schema)
		m := c.join(schema)
		if _, err := m.election(backendRole).TryAcquire(soon(t)); !errors.Is(err, tenure.ErrHeld) {
			t.Errorf("a node whose search path is %s: %v; want ErrHeld", schema, err)
		}
	}
	if found := value(t, db, "SELECT count(*) FROM pg_tables WHERE schemaname IN ('one', 'two')"); found != "0" {
		t.Errorf("%s tables in schemas that only the search path names", found)
	}
	c.lease.Schema, c.steps = "one", steplog.New(t)
	leads(t, c.join("elsewhere").campaign(backendRole))
}

// Stores whose connections have different search paths elect one leader. A store in
// another schema is another election.
func TestStoreIgnoresSearchPath(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	source := k.source(t)
	db := k.connect(t, source)
	execute(t, db, "CREATE SCHEMA one")
	elect := func(source, schema string) (store.Lease, uuid.UUID) {
		t.Helper()
		s, err := store.New(k.connect(t, source), k.dialect, store.Config{Schema: schema, Window: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		candidate := uuid.New()
		held, err := s.Elect(soon(t), "n", candidate)
		if err != nil {
			t.Fatal(err)
		}
		return held, candidate
	}
	_, first := elect(source, "")
	if held, _ := elect(withSearchPath(t, source, "one"), ""); held.Holder != first {
		t.Errorf("with another search path %s leads; want %s", held.Holder, first)
	}
	if held, candidate := elect(source, "one"); held.Holder != candidate {
		t.Errorf("in another schema %s leads; want %s", held.Holder, candidate)
	}
}
