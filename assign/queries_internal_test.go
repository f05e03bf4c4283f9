package assign

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/postgres"
)

// The indexes of Setup serve every statement: none reads the whole table.
func TestSetupIndexesServeAllStatements(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	conn := server.Conn(t)
	ctx := t.Context()
	config := Config{Table: pgx.Identifier{schema, "jobs"}, Columns: Columns{Priority: "priority", CreatedAt: "created_at"}}.withDefaults()
	backend, err := postgres.New(server.DSN(), postgres.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	setup, err := Setup(backend, config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.PgConn().Exec(ctx, `
		CREATE SCHEMA `+schema+`;
		CREATE TABLE `+schema+`.jobs (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			state text NOT NULL,
			node_id uuid,
			capability text NOT NULL,
			attempts integer NOT NULL DEFAULT 0,
			assignment bigint NOT NULL DEFAULT 0,
			priority integer,
			created_at timestamptz DEFAULT clock_timestamp()
		);
		INSERT INTO `+schema+`.jobs (state, capability, node_id)
		SELECT coalesce((ARRAY['pending', 'assigned', 'running', 'dead'])[n % 100], 'done'), 'a', gen_random_uuid()
		FROM generate_series(1, 20000) n;
		ANALYZE `+schema+`.jobs;`+setup).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	table, err := readTable(ctx, conn, config)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	explain := func(name, index, sql string, args ...any) {
		t.Helper()
		rows, err := tx.Query(ctx, "EXPLAIN "+table.sql(sql), append([]any{fresh}, args...)...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan := strings.Join(lines, "\n")
		if strings.Contains(plan, "Seq Scan on jobs") || !strings.Contains(plan, index) {
			t.Errorf("%s reads the table without %s:\n%s", name, index, plan)
		}
	}
	s, ids, nodes := config.States, []string{"1", "2"}, []string{uuid.NewString()}
	explain("the overview", "jobs_assign_pending", overview, s.Pending, s.Assigned, s.Running, maxCapabilities)
	explain("the overview", "jobs_assign_unfinished", overview, s.Pending, s.Assigned, s.Running, maxCapabilities)
	explain("counting", "jobs_assign_pending", countWaiting, s.Pending, []string{"a"}, maxCounted)
	explain("replaying", "jobs_assign_dead", replayRows, s.Dead, s.Pending, []string(nil), 10)
	if _, err := tx.Exec(ctx, prepareTransaction, "1000", config.Table.Sanitize()); err != nil {
		t.Fatal(err)
	}
	explain("counting unfinished rows", "jobs_assign_unfinished", countUnfinished, s.Assigned, s.Running)
	explain("taking back", "jobs_assign_unfinished", takeBack,
		s.Pending, s.Assigned, s.Running, s.Dead, nodes, []string{}, 10, 1000)
	explain("choosing", "jobs_assign_pending", choosePending, s.Pending, []string{"a", ""}, []int64{10, 10}, 1000)
	explain("giving out", "jobs_pkey", assignRows, ids, []*string{&nodes[0], nil}, s.Assigned, s.Dead, int64(1))
}
