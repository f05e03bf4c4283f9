package assign_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/assign"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Names that need quotes, and all allowed types.
func TestTablesCanHaveQuotedNamesAndAllTypes(t *testing.T) {
	t.Parallel()
	columns := assign.Columns{
		ID: `the "id"`, State: "State; --", Node: "node $1", Capability: `needs {table} \`, Attempts: "try's", Assignment: "select",
		Priority: "DESC", CreatedAt: "t.at",
	}
	states := assign.States{Pending: "it's new", Assigned: `given\`, Running: `"on"`, Dead: "$1::{state:type}"}
	long := strings.Repeat("long ", 12) + "tab"
	for name, test := range map[string]struct {
		table                     string
		id, state, node, attempts string
	}{
		"enumeration":       {`jo"b's`, "uuid DEFAULT gen_random_uuid()", "job_state", "uuid", "integer"},
		"character varying": {long, "bigint GENERATED ALWAYS AS IDENTITY", "varchar(20)", "varchar(36)", "bigint"},
		"text":              {"SELECT", "text DEFAULT gen_random_uuid()", "text", "text", "integer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			quote := func(name string) string { return pgx.Identifier{name}.Sanitize() }
			table := pgx.Identifier{w.Schema, test.table}.Sanitize()
			w.raw(`CREATE TYPE ` + w.Schema + `.job_state AS ENUM ('it''s new', 'given\', '"on"', '$1::{state:type}', 'done')`)
			w.raw(`CREATE TABLE ` + table + ` (
				` + quote(columns.ID) + ` ` + test.id + ` UNIQUE NOT NULL,
				` + quote(columns.State) + ` ` + strings.Replace(test.state, "job_state", w.Schema+".job_state", 1) + ` NOT NULL DEFAULT 'it''s new',
				` + quote(columns.Node) + ` ` + test.node + `,
				` + quote(columns.Capability) + ` varchar(30) NOT NULL,
				` + quote(columns.Attempts) + ` ` + test.attempts + ` NOT NULL DEFAULT 0,
				` + quote(columns.Assignment) + ` bigint NOT NULL DEFAULT 0,
				"DESC" numeric,
				"t.at" timestamptz DEFAULT clock_timestamp())`)
			config := w.config()
			config.Table[1], config.Columns, config.States, config.MaxAttempts = test.table, columns, states, 1
			for range 2 { // it can be repeated
				sql, err := assign.Setup(w.Backend, config)
				if err != nil {
					t.Fatal(err)
				}
				w.raw(sql)
			}
			count := func(state string) int {
				var n int
				if err := w.Pool.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE "State; --"::text = $1`, state).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			capability := `a "b" ';--`
			a := w.worker("a", capability)
			w.run(w.assigner(w.scheduler("leader"), config))
			w.raw(`INSERT INTO ` + table + ` (` + quote(columns.Capability) + `) SELECT 'a "b" '';--' FROM generate_series(1, 7)`)
			w.Await("all assigned", func() bool { return count(states.Assigned) == 7 })
			w.raw(`UPDATE ` + table + ` SET "State; --" = '"on"'`)
			a.kill()
			w.Await("all dead", func() bool { return count(states.Dead) == 7 })
			if n, err := assign.Replay(t.Context(), w.Pool, config, 5); n != 5 || err != nil {
				t.Errorf("%d rows were replayed; 5 should be: %v", n, err)
			}
			if got := count(states.Pending); got != 5 {
				t.Errorf("%d rows wait for a node that can take them; 5 should", got)
			}
		})
	}
}

// raw runs SQL unchanged, of several statements.
func (w *world) raw(sql string) {
	w.Helper()
	conn := pgtest.Conn(w, w.Server.DSN())
	if _, err := conn.PgConn().Exec(w.Context(), sql).ReadAll(); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// A table that cannot be used is rejected before the election.
func TestRunRejectsUnusableTables(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"DROP TABLE {schema}.jobs":                                                    "no table",
		"ALTER TABLE {schema}.jobs DROP assignment":                                   `no column "assignment"`,
		"ALTER TABLE {schema}.jobs ALTER state TYPE bytea USING ''":                   `"state"`,
		"ALTER TABLE {schema}.jobs ALTER state DROP NOT NULL":                         `"state" SET NOT NULL`,
		"ALTER TABLE {schema}.jobs ALTER capability DROP NOT NULL":                    `"capability" SET NOT NULL`,
		"ALTER TABLE {schema}.jobs ALTER node_id SET NOT NULL":                        `"node_id" DROP NOT NULL`,
		"ALTER TABLE {schema}.jobs ALTER assignment TYPE integer":                     "bigint",
		"ALTER TABLE {schema}.jobs DROP CONSTRAINT jobs_pkey, ADD UNIQUE (id, state)": "unique",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Exec(jobs)
			w.Exec("ALTER TABLE {schema}.jobs ALTER state DROP DEFAULT")
			w.Exec(change)
			assigner := w.assigner(w.scheduler("leader"), w.config())
			err := assigner.Run(t.Context())
			if !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if _, err := assigner.Unassignable(t.Context()); !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Errorf("what cannot be assigned: got %v", err)
			}
			if _, err := assign.Replay(t.Context(), w.Pool, w.config(), 0); !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Errorf("replay: got %v", err)
			}
		})
	}
}

// The documented privileges suffice, and no others are used.
func TestPrintedGrantsSuffice(t *testing.T) {
	t.Parallel()
	w := newJobs(t)
	user := w.Schema
	w.raw(`CREATE ROLE "` + user + `" LOGIN`)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		sql := `DROP OWNED BY "` + user + `"; DROP ROLE "` + user + `"`
		if _, err := pgtest.Conn(t, w.Server.DSN()).PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Error(err)
		}
	})
	pool := w.poolOf(user)
	assigner, err := assign.New(w.scheduler("leader"), pool, w.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, grant := range []string{`GRANT USAGE ON SCHEMA {schema} TO`, `GRANT SELECT ON {schema}.jobs TO`} {
		if err := assigner.Run(t.Context()); !errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), "assign.Grants") {
			t.Errorf("before %s: got %v", grant, err)
		}
		w.Exec(grant + ` "` + user + `"`)
	}
	if err := assigner.Run(t.Context()); !errors.Is(err, dberr.ErrPrivilege) {
		t.Errorf("without the right to write: got %v", err)
	}
	w.Exec(`REVOKE SELECT ON {schema}.jobs FROM "` + user + `"`)
	grants, err := assign.Grants(w.Backend, w.config(), user)
	if err != nil {
		t.Fatal(err)
	}
	w.raw(grants)
	a := w.worker("a")
	w.run(assigner)
	w.add(3, "")
	w.Await("all assigned", func() bool { return w.has(a) == 3 })
	w.Exec(`UPDATE {schema}.jobs SET state = 'dead'`)
	if n, err := assign.Replay(t.Context(), pool, w.config(), 0); n != 3 || err != nil {
		t.Errorf("%d rows were replayed: %v", n, err)
	}
}

func (w *world) poolOf(user string) *pgxpool.Pool {
	w.Helper()
	return pgtest.Pool(w, w.Server.DSNFor(user, "postgres"))
}
