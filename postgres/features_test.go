package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres/internal/diagnosis"
)

// newFeature returns a feature that needs another one.
func newFeature() *schema.Feature {
	base := &schema.Feature{Name: "base", Steps: []schema.Step{{Up: `CREATE TABLE {base} (id int)`, Down: `DROP TABLE {base}`}}}
	return &schema.Feature{
		Name: "extra", Requires: []*schema.Feature{base},
		Steps: []schema.Step{{Up: `CREATE TABLE {extra} (id int)`, Down: `DROP TABLE {extra}`}},
	}
}

// Many processes use a feature for the first time, at the same time, while
// nodes run. One of them creates the tables of the feature and of those that it
// requires.
func TestFirstUseCreatesTables(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	pool := pgtest.Pool(t, server.DSN())
	f := newFeature()
	if exist, err := b.installation.Schema.Has(t.Context(), pool, f); err != nil || exist {
		t.Errorf("before: %t, %v", exist, err)
	}
	var group sync.WaitGroup
	for range 10 {
		other := backendOn(t, server.DSN(), Config{Schema: b.config.Schema})
		group.Go(func() {
			if err := other.installation.Schema.Ensure(t.Context(), pool, f); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	p.beat()
	for _, table := range []string{"base", "extra"} {
		if !row[bool](t, b, `SELECT to_regclass($1) IS NOT NULL`, b.names.SQL("{"+table+"}")) {
			t.Errorf("no table %s", table)
		}
	}
	if exist, err := b.installation.Schema.Has(t.Context(), pool, f); err != nil || !exist {
		t.Errorf("afterwards: %t, %v", exist, err)
	}
}

// Every prefix that New accepts can be in the script that creates the tables of a feature.
func TestScriptOfFeatureWorksWithAcceptedNames(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	feature := &schema.Feature{Name: "pairs", Steps: []schema.Step{{Up: `CREATE TABLE {pairs} (a int, b int);`}}}
	for _, quote := range []string{"$tenure_feature$", "$$"} {
		b, err := New(server.DSN(), Config{Schema: server.Schema(t), Prefix: "a" + quote})
		if errors.Is(err, tenure.ErrInvalidConfig) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		if err := b.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := pgtest.Conn(t, server.DSN()).Exec(t.Context(), b.names.SQL(feature.Script(true))); err != nil {
			t.Errorf("the prefix %q: %v", b.config.Prefix, err)
		}
	}
}

// An operator removes the schema. The node that creates it again also creates
// the tables of a feature that it has used before.
func TestNewInstallationGetsTablesOfUsedFeature(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := pgtest.Pool(t, pgtest.Shared(t).DSN())
	f := newFeature()
	for range 2 {
		p := open(t, b)
		if err := b.installation.Schema.Ensure(t.Context(), pool, f); err != nil {
			t.Fatal(err)
		}
		if !row[bool](t, b, `SELECT to_regclass($1) IS NOT NULL`, b.names.SQL("{extra}")) {
			t.Fatal("no table extra")
		}
		exec(t, b, dropSchema)
		p.Abort()
	}
}

// If a program must not or may not create tables, the error names the command
// that does.
func TestFirstUseWithoutMigrationIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{}) // users belong to the whole server
	owner := backendOn(t, server.DSN(), Config{})
	ctx := t.Context()
	if err := owner.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	pool := pgtest.Pool(t, server.DSN())
	exec(t, owner, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	dsn := user(t, server, "node")
	exec(t, owner, owner.NodeGrants("node"))
	for _, test := range []struct {
		dsn    string
		config Config
		want   error
	}{
		{server.DSN(), Config{ManualMigrations: true}, dberr.ErrSchema},
		{dsn, Config{}, dberr.ErrPrivilege},
	} {
		err := backendOn(t, test.dsn, test.config).installation.Schema.Ensure(ctx, pool, newFeature())
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), "tenure migrate up --feature extra") {
			t.Errorf("%+v: %v; want %v and the command", test.config, err, test.want)
		}
	}
	if exist, err := owner.installation.Schema.Has(ctx, pool, newFeature()); err != nil || exist {
		t.Errorf("afterwards: %t, %v", exist, err)
	}
}

// Programs of versions n-1 and n of a feature work side by side if the
// migration allows it, and each feature has a separate version.
func TestFeaturesHaveSeparateVersions(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	ctx := t.Context()
	pool := pgtest.Pool(t, pgtest.Shared(t).DSN())
	older, newer := newFeature(), newFeature()
	newer.Steps = append(newer.Steps, schema.Step{
		Up: `ALTER TABLE {extra} ADD COLUMN trial int`, Down: `ALTER TABLE {extra} DROP COLUMN trial`, UsableFrom: 1,
	})
	for _, f := range []*schema.Feature{older, newer, older} {
		b.installation.Schema.Forget()
		if err := b.installation.Schema.Ensure(ctx, pool, f); err != nil {
			t.Errorf("creating the tables of version %d: %v", f.Newest(), err)
		}
	}
	open(t, b).take("scheduler") // the core is not affected
	exec(t, b, `UPDATE {migrations} SET usable_from = NULL WHERE feature = 'extra'`)
	b.installation.Schema.Forget()
	for name, fn := range map[string]func(context.Context, schema.Querier, *schema.Feature) error{
		"create": b.installation.Schema.Ensure,
		"look": func(ctx context.Context, q schema.Querier, f *schema.Feature) error {
			_, err := b.installation.Schema.Has(ctx, q, f)
			return err
		},
	} {
		if err := fn(ctx, pool, older); !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "extra has version 2") {
			t.Errorf("%s: %v; want ErrSchema and the version", name, err)
		}
	}
	open(t, b).take("worker")

	// A program that does not know the feature removes nothing.
	for _, p := range []string{schema.Core, schema.All} {
		err := newBackendLike(t, b).MigrateDown(ctx, p, 0)
		if !errors.Is(err, dberr.ErrSchema) || !strings.Contains(err.Error(), "base, extra") {
			t.Errorf("down of %s: %v; want ErrSchema and the features", p, err)
		}
	}
}

func newBackendLike(t *testing.T, b *Backend) *Backend {
	t.Helper()
	return backendOn(t, pgtest.Shared(t).DSN(), Config{Schema: b.config.Schema})
}

// TestDiagnoseReportsFeatures: the diagnosis has a finding for each feature, with
// the version that is installed and the one that is wanted.
func TestDiagnoseReportsFeatures(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	open(t, b)
	ctx := t.Context()
	exec(t, b, `INSERT INTO {migrations} (feature, version, usable_from) VALUES
		('current', 1, NULL), ('older', 1, NULL), ('usable', 2, 1), ('newer', 2, NULL), ('foreign', 3, NULL)`)
	step := schema.Step{Up: `SELECT 1`, Down: `SELECT 1`}
	features := map[string]*schema.Feature{}
	for _, f := range []schema.Feature{
		{Name: "missing", Steps: []schema.Step{step}}, {Name: "current", Steps: []schema.Step{step}},
		{Name: "older", Steps: []schema.Step{step, step}}, {Name: "usable", Steps: []schema.Step{step}},
		{Name: "newer", Steps: []schema.Step{step}},
	} {
		features[f.Name] = &f
	}
	versions, err := b.installation.Schema.Versions(ctx, pgtest.Pool(t, pgtest.Shared(t).DSN()))
	if err != nil {
		t.Fatal(err)
	}
	type finding struct {
		severity doctor.Severity
		detail   string
	}
	for manual, want := range map[bool]map[string]finding{
		false: {
			"missing": {doctor.OK, "not installed; the first use creates version 1"},
			"current": {doctor.OK, "version 1"},
			"older":   {doctor.OK, "version 1; the next use brings it to version 2"},
			"usable":  {doctor.OK, "version 2; this program knows version 1 and works with both"},
			"newer":   {doctor.Warning, "version 2; this program works with version 1"},
		},
		true: {
			"missing": {doctor.OK, "not installed, version 1 is wanted"},
			"older":   {doctor.Warning, "version 1; version 2 is wanted"},
		},
	} {
		for name, wanted := range want {
			f := diagnosis.FeatureFinding(features[name], versions[name], manual)
			if f.Name != "tables of "+name || f.Severity != wanted.severity || f.Detail != wanted.detail {
				t.Errorf("%s, manual %t: %+v; want %+v", name, manual, f, wanted)
			}
		}
	}
	if f := found(t, b.Diagnose(ctx), "tables of foreign"); f.Severity != doctor.OK || !strings.Contains(f.Detail, "does not have the feature") {
		t.Errorf("a feature of another program: %+v", f)
	}
}
