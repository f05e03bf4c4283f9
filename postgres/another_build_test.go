package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/schema"
)

// edited is a copy of the core whose first function another build wrote in other words.
func edited() *schema.Feature {
	other := *core
	other.Steps = []schema.Step{core.Steps[0]}
	other.Steps[0].Up = strings.Replace(other.Steps[0].Up, "BEGIN\n", "BEGIN\n    -- Another build.\n", 1)
	return &other
}

// A node refuses tables that differ from its own and says that another build made them.
// A repair makes them its own.
func TestTablesOfAnotherBuildAreRefused(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	other := newBackendLike(t, b)
	other.installation.Core = edited()
	if err := other.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := tryOpen(t, b)
	for what, err := range map[string]error{"opening": err, "migrating": b.Migrate(t.Context())} {
		if !errors.Is(err, dberr.ErrSchema) || errors.Is(err, dberr.ErrDamaged) || !strings.Contains(fmt.Sprint(err), "another build of Tenure made its version 1 of core") {
			t.Errorf("%s: %v; want that another build made the tables", what, err)
		}
	}
	if _, err := b.MigrateRepair(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if statements, err := b.MigrateRepair(t.Context(), false); err != nil || len(statements) > 0 {
		t.Errorf("a second repair: %v, %v; want nothing", statements, err)
	}
	open(t, b)
	versions, err := b.SchemaVersions(t.Context())
	if err != nil || versions[0].OtherBuild {
		t.Errorf("after the repair: %+v, %v; want no other build", versions[0], err)
	}
}

// A table, column or function that is missing while a session opens is no fault of the
// connection.
func TestMissingObjectsAreNoConnectionFault(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for _, code := range []string{"42P01", "42703", "42883"} {
		err := b.explain(&pgconn.PgError{Code: code})
		if !errors.Is(err, dberr.ErrSchema) || errors.Is(err, tenure.ErrConnection) {
			t.Errorf("%s: %v; want ErrSchema and not ErrConnection", code, err)
		}
	}
}
