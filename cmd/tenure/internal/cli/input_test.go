package cli

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

const secret = "hunter2secret"

// Bad input leads to a clear error of one line and exit code 2, with nothing on
// standard output and no password, and nothing is changed in the database.
func TestBadInputIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	dsn := strings.Replace(server.DSN(), "postgres@", "postgres:"+secret+"@", 1)
	on := func(args ...string) []string { return append(args, "--dsn", dsn, "--schema", schema) }
	guarded := func(args ...string) []string {
		return append([]string{"run", "--dsn", dsn, "--schema", schema, "--role", "a"}, args...)
	}
	url := "postgres://u:" + secret
	for _, test := range []struct {
		name string
		args []string
		want string // part of the message
	}{
		{"unknown command", []string{"rnu"}, `no command "rnu"; did you mean "tenure run"?`},
		{"unknown command of a group", []string{"cron", "histroy"}, `no command "histroy" in tenure cron; did you mean "tenure cron history"?`},
		{"unknown command with a flag", []string{"rnu", "--role", "a"}, `no command "rnu"; did you mean "tenure run"?`},
		{"unknown command of a group with a flag", []string{"cron", "histroy", "--run", "1"}, `did you mean "tenure cron history"?`},
		{"help about an unknown command", []string{"help", "cron", "histroy"}, `did you mean "tenure cron history"?`},
		{"strange command", []string{"frobnicate"}, `no command "frobnicate"; see tenure --help`},
		{"flag of a group with one command", on("cluster"), "unknown flag: --dsn; write tenure cluster status before the flag"},
		{"flag of a group", on("node"), "unknown flag: --dsn; write a command before the flag, such as tenure node "},
		{"flag of no command", on(), "unknown flag: --dsn; write a command before the flag, such as tenure "},
		{"unknown flag", on("run", "--rolle", "a"), "--rolle"},
		{"output", []string{"version", "-o", "yaml"}, "text, wide or json"},
		{"arguments", on("status", "billing"), "takes no arguments"},
		{"command without dashes", on("run", "--role", "a", "sleep", "1"), "write -- before the command"},
		{"no command", guarded("--"), "no command after --"},
		{"command for two roles", guarded("--role", "b", "--", "true"), "one role, but 2 were given"},
		{"grace without a command", on("run", "--role", "a", "--grace", "1s"), "--grace requires a command"},
		{"long grace", guarded("--lease", "6s", "--grace", "1.401s", "--", "true"), "at most 1.4s"},
		{"long grace on a file", []string{"run", "--role", "a", "--dsn", "sqlite:a.db", "--grace", "701ms", "--", "true"}, "at most 700ms"},
		{"grace and stop timeout", guarded("--grace", "1s", "--stop-timeout", "0.9", "--", "true"), "longer than --stop-timeout"},
		{"restart", guarded("--restart", "sometimes", "--", "true"), "never, on-failure or always"},
		{"once and again", guarded("--once", "--restart", "always", "--", "true"), "contradict"},
		{"restarts out of range", guarded("--max-restarts", "-1", "--", "true"), "between 0 and 1000000"},
		{"no slots", guarded("--slots", "0", "--", "true"), "between 1 and 100"},
		{"too many slots", guarded("--slots", "101", "--", "true"), "between 1 and 100"},
		{"slots per node alone", guarded("--slots-per-node", "2", "--", "true"), "requires --slots"},
		{"no slots per node", guarded("--slots", "2", "--slots-per-node", "0", "--", "true"), "between 1 and 100"},
		{"more slots per node than slots", guarded("--slots", "2", "--slots-per-node", "3", "--", "true"), "at most --slots, 2"},
		{"slots without a command", on("run", "--role", "a", "--slots", "2"), "--slots requires a command"},
		{"slots of a key", []string{"run", "--dsn", dsn, "--schema", schema, "--key", "42", "--slots", "2", "--", "true"}, "without a lock key"},
		{"slots of a role with a key", []string{"run", "--dsn", dsn, "--schema", schema, "--role", "a=42", "--slots", "2", "--", "true"}, "without a lock key"},
		{"slots of a long role", []string{"run", "--dsn", dsn, "--schema", schema, "--role", strings.Repeat("a", 254), "--slots", "2", "--", "true"}, "the role of the last slot"},
		{"once in several slots", guarded("--slots", "2", "--slots-per-node", "2", "--once", "--", "true"), "--slots-per-node 1"},
		{"health interval alone", guarded("--health-every", "1s", "--", "true"), "requires --health-command"},
		{"health without a command", on("run", "--role", "a", "--health-command", "true"), "--health-command requires a command"},
		{"no leader exit", guarded("--no-leader-exit", "256", "--", "true"), "from 0 to 255"},

		{"no dsn", []string{"run", "--role", "a"}, "TENURE_DSN"},
		{"empty dsn", []string{"run", "--role", "a", "--dsn", ""}, "--dsn is empty"},
		{"port", []string{"run", "--role", "a", "--dsn", url + "@host:port/db"}, "cannot be parsed"},
		{"port in a list", []string{"run", "--role", "a", "--dsn", "host=h port=x password=" + secret}, "cannot be parsed"},
		{"unescaped at sign", []string{"status", "--dsn", "postgres://u:p@" + secret + "@host/db"}, "escape the password"},
		{"unescaped slash", []string{"run", "--role", "a", "--dsn", "postgres://u:12/" + secret + "@host/db"}, "escape the password"},
		{"unescaped space", []string{"doctor", "--dsn", "host=h password=a " + secret + "=b"}, "escape the password"},
		{"unescaped at sign of MySQL", []string{"status", "--dsn", "mysql://u:12/" + secret + "@host"}, "percent-encoded"},
		{"unescaped question mark of MySQL", []string{"status", "--dsn", "mysql://u:12?" + secret + "=1@host/db"}, "percent-encoded"},
		{"GSSAPI", []string{"cron", "list", "--dsn", url + "@host/db?gssencmode=require"}, "TLS only"},
		{"standby", []string{"node", "list", "--dsn", url + "@host/db?target_session_attrs=standby"}, "target_session_attrs must be"},
		{"unknown parameter", []string{"history", "--dsn", "postgres://u@host/db?keepalive=1"}, "keepalive, which neither"},
		{"escape", []string{"status", "--dsn", url + "%zz@host/db"}, "cannot be parsed"},
		{"scheme", []string{"doctor", "--dsn", "redis://u:" + secret + "@host/db"}, "known are postgres://"},
		{"no such directory", []string{"run", "--role", "a", "--dsn", "sqlite:/nowhere/at/all.db"}, "does not exist"},
		{"two databases", on("status", "--local"), "exclude each other"},
		{"schema of a file", []string{"status", "--dsn", "sqlite:" + filepath.Join(t.TempDir(), "a.db"), "--schema", "s"}, "no schemas"},
		{"grants on a file", []string{"migrate", "grants", "--user", "u", "--dsn", "sqlite:a.db"}, "no users"},
		{"quote", []string{"migrate", "--dsn", "host=h password='" + secret}, "cannot be parsed"},
		{"no sense", []string{"acquire", "--role", "a", "--dsn", secret}, "cannot be parsed"},
		{"tls", []string{"observe", "--dsn", url + "@host/db?sslmode=" + secret}, "cannot be parsed"},

		{"no role", on("run"), "--role NAME"},
		{"name and key", on("run", "--role", "a", "--key", "1"), "only one of"},
		{"name and pair", on("acquire", "--role", "a", "--key1", "1", "--key2", "2"), "only one of"},
		{"key and pair", on("status", "--key", "1", "--key1", "1", "--key2", "2"), "only one of"},
		{"half a pair", on("run", "--key1", "1"), "must be used together"},
		{"key1 too large", on("run", "--key1", "2147483648", "--key2", "1"), "out of range"},
		{"key2 too small", on("run", "--key1", "1", "--key2", "-2147483649"), "out of range"},
		{"key too large", on("run", "--key", "9223372036854775808"), "out of range"},
		{"key far too large", on("status", "--key", "99999999999999999999999"), "out of range"},
		{"key is a word", on("run", "--key", "one"), "not an integer"},
		{"key by name too large", on("run", "--role", "key:9223372036854775808"), "out of range"},
		{"pair by name too large", on("run", "--role", "key:1:2147483648"), "out of range"},
		{"empty role", on("run", "--role", ""), "the name is empty"},
		{"long role", on("run", "--role", strings.Repeat("r", 256)), "256 bytes"},
		{"control character", on("run", "--role", "a\nb"), "control character U+000A"},
		{"not UTF-8", on("run", "--role", "a\xffb"), "UTF-8"},
		{"role twice", on("run", "--role", "a", "--role", "a"), "twice"},
		{"two roles", on("acquire", "--role", "a", "--role", "b"), "name one role"},
		{"two roles to step down", on("step-down", "--key", "1", "--key", "2"), "name one role"},

		{"lease too short", on("run", "--role", "a", "--lease", "1s", "--refresh", "900ms", "--margin", "100ms"), "must be longer than"},
		{"refresh too long", on("run", "--role", "a", "--refresh", "10.0"), "must be longer than"},
		{"both intervals", on("run", "--role", "a", "--health-interval", "1", "--refresh", "1"), "give one of them"},
		{"tiny lease", on("acquire", "--role", "a", "--lease", "1ms"), "it must be at least 100ms"},
		{"huge lease", on("run", "--role", "a", "--lease", "25h"), "it must be at most 24h"},
		{"zero lease", on("run", "--role", "a", "--lease", "0"), "more than zero"},
		{"negative", on("run", "--role", "a", "--retry-base", "-1"), "negative"},
		{"not a duration", on("run", "--role", "a", "--lease", "soon"), "5s, 1m30s or 5.0"},
		{"not a number", on("run", "--role", "a", "--lease", "NaN"), "out of range"},
		{"endless", on("run", "--role", "a", "--lease", "Inf"), "out of range"},
		{"backoff", on("run", "--role", "a", "--retry-base", "10", "--retry-max", "5"), "longer than --retry-max"},
		{"empty name", on("run", "--role", "a", "--name", ""), "--name is empty"},
		{"name", on("run", "--role", "a", "--name", "a\tb"), "control characters"},
		{"log level", on("run", "--role", "a", "--log-level", "loud"), "--log-level"},
		{"log format", on("run", "--role", "a", "--log-format", "xml"), "--log-format"},

		{"long schema", []string{"run", "--role", "a", "--dsn", dsn, "--schema", strings.Repeat("s", 64)}, "64 bytes"},
		{"empty schema", []string{"status", "--dsn", dsn, "--schema", ""}, "--schema is empty"},
		{"long prefix", on("migrate", "--prefix", strings.Repeat("p", 33)), "33 bytes"},
		{"empty prefix", on("doctor", "--prefix", ""), "--prefix is empty"},
		{"nothing to go down to", on("migrate", "down"), "--to"},
		{"down to nowhere", on("migrate", "down", "--to", "-1", "--yes"), "between 0 and"},
		{"down without an agreement", on("migrate", "down", "--to", "0"), "--yes"},
		{"mode", on("migrate", "mode"), "sessions or leases"},
		{"another mode", on("migrate", "mode", "shares"), "sessions or leases"},
		{"grants without a user", on("migrate", "grants"), "--user"},
		{"migrate sideways", on("migrate", "sideways"), "takes no arguments"},
		{"demo", []string{"demo", "--kill-every", "0"}, "more than zero"},

		{"no schema to show", on("status"), "schema"},
		{"no schema to step down in", on("step-down", "--role", "a"), "schema"},
		{"manual migrations", on("run", "--role", "a", "--manual-migrations"), "schema"},
		{"manual migrations, once", on("acquire", "--role", "a", "--manual-migrations"), "schema"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := invoke(t, test.args...).want(t, console.ExitUsage)
			if got.stdout != "" {
				t.Errorf("standard output: %s", got.stdout)
			}
			if !strings.HasPrefix(got.stderr, "tenure: ") || strings.Index(got.stderr, "\n") != len(got.stderr)-1 {
				t.Errorf("not one line: %q", got.stderr)
			}
			if !strings.Contains(got.stderr, test.want) {
				t.Errorf("%q is not in %s", test.want, got.stderr)
			}
			if strings.Contains(got.stderr, secret) {
				t.Errorf("the password is shown: %s", got.stderr)
			}
			var exists bool
			err := server.Conn(t).QueryRow(t.Context(), "SELECT to_regnamespace($1) IS NOT NULL", schema).Scan(&exists)
			if err != nil || exists {
				t.Errorf("the schema was created (%v)", err)
			}
		})
	}
}

// The flag takes precedence, then the variables in their order.
func TestDatabaseFlagOverridesVariables(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	schema := server.Schema(t)
	good, bad := server.DSN(), "postgres://127.0.0.1:1/nowhere"
	for _, test := range []struct {
		name      string
		variables []string
		args      []string
		code      int
	}{
		{"flag", []string{"TENURE_DSN=" + bad}, []string{"--dsn", good}, console.ExitDone},
		{"TENURE_DSN", []string{"TENURE_DSN=" + good, "PG_DSN=" + bad, "DATABASE_URL=" + bad, "PGHOST=127.0.0.2"}, nil, console.ExitDone},
		{"PG_DSN", []string{"TENURE_DSN=", "PG_DSN=" + good, "DATABASE_URL=" + bad}, nil, console.ExitDone},
		{"DATABASE_URL", []string{"DATABASE_URL=" + good, "PGHOST=127.0.0.2"}, nil, console.ExitDone},
		{"libpq", []string{"PGHOST=" + server.Host, "PGPORT=" + strconv.Itoa(server.Port), "PGUSER=postgres", "PGSSLMODE=disable"}, nil, console.ExitDone},
		{"flag to nowhere", []string{"TENURE_DSN=" + good}, []string{"--dsn", bad}, console.ExitDatabase},
		{"user only", []string{"PGUSER=postgres"}, nil, console.ExitUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"migrate", "version", "--schema", schema}, test.args...)
			invokeWith(t, test.variables, args...).want(t, test.code)
		})
	}
}

// One-shot commands give up with exit code 3.
func TestUnreachableDatabaseExitsWith3(t *testing.T) {
	t.Parallel()
	dsn := "postgres://u:" + secret + "@127.0.0.1:1/nowhere"
	for _, args := range [][]string{
		{"acquire", "--role", "a"}, {"status"}, {"observe"},
		{"step-down", "--role", "a"}, {"migrate"}, {"migrate", "down", "--to", "0", "--yes"}, {"migrate", "mode", "leases"}, {"migrate", "version"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			got := invoke(t, append(args, "--dsn", dsn)...)
			got.want(t, console.ExitDatabase)
			if got.stdout != "" || strings.Count(got.stderr, "\n") != 1 || strings.Contains(got.stderr, secret) {
				t.Errorf("stdout %q, stderr %q", got.stdout, got.stderr)
			}
		})
	}
}
