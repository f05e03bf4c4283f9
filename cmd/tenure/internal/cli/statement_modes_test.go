package cli

import (
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// reading are the commands that read.
var reading = [][]string{
	{"cron", "list"}, {"status"}, {"status", "-o", "json"}, {"cluster", "status"}, {"history"}, {"history", "--nodes"}, {"node", "list"}, {"node", "show", "one"},
	{"processor", "list"}, {"processor", "lag"},
	{"alerts", "list"}, {"alerts", "history"}, {"alerts", "silences"}, {"audit"}, {"doctor"}, {"migrate", "status"},
}

// A string that is made for the program's own pool and a pooler works in every command.
func testStatementModes(t *testing.T, parameters ...string) {
	t.Helper()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	for _, args := range reading {
		plain := invoke(t, place.with(args...)...)
		if plain.code == console.ExitUsage {
			t.Errorf("%v: exit code %d without a parameter: %s", args, plain.code, plain.stderr)
		}
		for _, parameter := range parameters {
			got := invoke(t, append(args, "--dsn", place.server.DSN()+"&"+parameter, "--schema", place.schema)...)
			if got.code != plain.code || (got.stderr == "") != (plain.stderr == "") {
				t.Errorf("%v with %s: exit code %d, want %d; stderr: %s", args, parameter, got.code, plain.code, got.stderr)
			}
		}
	}
}

func TestCommandsReadWithoutStatementCache(t *testing.T) {
	t.Parallel()
	testStatementModes(t, "statement_cache_capacity=0")
}

func TestCommandsReadInEveryStatementMode(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	testStatementModes(t, "default_query_exec_mode=exec", "default_query_exec_mode=simple_protocol",
		"default_query_exec_mode=cache_describe", "default_query_exec_mode=describe_exec", "description_cache_capacity=0",
		"pool_max_conns=3", "keepalives_idle=30", "hostaddr=127.0.0.1", "gssencmode=disable")
}
