package schema_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var feature = &schema.Feature{
	Name: "extra",
	Steps: []schema.Step{{
		Up: `CREATE TABLE {extra} (id int); INSERT INTO {extra} VALUES (1)`, Down: `DROP TABLE {extra}`,
	}},
}

// backend migrates on a pool.
type backend struct {
	schema.Backend

	names schema.Names
	pool  *pgxpool.Pool
}

func (b backend) Migrate(ctx context.Context, features ...*schema.Feature) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.names.Up(ctx, tx, features...) })
}

func (b backend) down(t *testing.T) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error { return b.names.Down(t.Context(), tx, feature, 0) })
	if err != nil {
		t.Fatal(err)
	}
}

// newBackend returns a backend with a table of versions.
func newBackend(t *testing.T) backend {
	t.Helper()
	server := pgtest.Shared(t)
	b := backend{names: schema.NewNames(server.Schema(t), ""), pool: pgtest.Pool(t, server.DSN())}
	pgtest.Exec(t, b.pool, b.names.SQL("CREATE SCHEMA {schema}"))
	if err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReadersNoticeRemovedTables: a process that has no session continues without the
// tables of a feature when an operator has removed them, and finds them again.
func TestReadersNoticeRemovedTables(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	s := schema.New(b.names, false, b)
	now := time.Now()
	s.SetNow(func() time.Time { return now })
	tables := schema.Tables{Schema: s, Feature: feature, Database: b.pool}
	count := func() int {
		t.Helper()
		rows, _ := tables.Query(t.Context(), "SELECT id FROM {extra}") // its error is that of the rows
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			t.Fatalf("a reader of tables that may be missing: %v", err)
		}
		return len(ids)
	}
	if got := count(); got != 0 {
		t.Errorf("before the first use: %d rows; want 0", got)
	}
	for range 2 {
		if err := tables.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != 1 {
			t.Errorf("after the tables were created: %d rows; want 1", got)
		}
		b.down(t)
		now = now.Add(time.Minute)
		if got := count(); got != 0 {
			t.Errorf("after the tables were removed: %d rows; want 0", got)
		}
	}
}

// TestOldVersionIsNotRemembered: tables of an older version are there for readers,
// and the next writer brings them up to date.
func TestOldVersionIsNotRemembered(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	if err := b.Migrate(t.Context(), feature); err != nil {
		t.Fatal(err)
	}
	newer := *feature
	newer.Steps = append(slices.Clone(newer.Steps), schema.Step{Up: `ALTER TABLE {extra} ADD COLUMN trial int`})
	s := schema.New(b.names, false, b)
	if exist, err := s.Has(t.Context(), b.pool, &newer); err != nil || !exist {
		t.Errorf("has an older version: %t, %v; want true", exist, err)
	}
	if err := s.Ensure(t.Context(), b.pool, &newer); err != nil {
		t.Fatalf("bringing the older tables up to date: %v", err)
	}
	if _, err := b.pool.Exec(t.Context(), b.names.SQL("SELECT trial FROM {extra}")); err != nil {
		t.Errorf("the older tables were not brought up to date: %v", err)
	}
}

// TestFailedStepLeavesNoVersion: a migration that fails halfway leaves neither
// tables nor a version.
func TestFailedStepLeavesNoVersion(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	broken := *feature
	broken.Steps = append(slices.Clone(broken.Steps), schema.Step{Up: `SELECT no_such_function()`})
	s := schema.New(b.names, false, b)
	if err := s.Ensure(t.Context(), b.pool, &broken); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	if exist, err := s.Has(t.Context(), b.pool, feature); err != nil || exist {
		t.Errorf("afterwards: %t, %v; want no tables", exist, err)
	}
}

// TestDownKeepsRequiredTables: the tables that another feature needs stay.
func TestDownKeepsRequiredTables(t *testing.T) {
	needing := schema.Register(schema.Feature{
		Name: "needing", Requires: []*schema.Feature{feature},
		Steps: []schema.Step{{Up: `CREATE TABLE {needing} (id int)`, Down: `DROP TABLE {needing}`}},
	})
	b := newBackend(t)
	if err := b.Migrate(t.Context(), feature, needing); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error { return b.names.Down(t.Context(), tx, feature, 0) })
	if err == nil || errors.Is(err, dberr.ErrSchema) {
		t.Errorf("removed the tables that another feature needs: %v", err)
	}
}
