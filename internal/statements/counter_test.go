package statements

import (
	"context"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestCounterCountsByNameOfPreparedStatement(t *testing.T) {
	config, err := pgx.ParseConfig(pgtest.Shared(t).DSN())
	if err != nil {
		t.Fatal(err)
	}
	var counter Counter
	conn, err := counter.Connect(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	exec := func(sql string, times int) {
		t.Helper()
		for range times {
			pgtest.Exec(t, conn, sql)
		}
	}
	if _, err := conn.Prepare(t.Context(), "one", "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	exec("one", 2)
	before := counter.Counts()
	exec("one", 3)
	exec("SELECT 2", 1)
	want := map[string]int{"one": 3, "SELECT 2": 1}
	if got := Since(before, counter.Counts()); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
