package pgdial

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/pgtest"
)

var uses = map[string]Use{
	"session": Session, "watch": Watch, "question": Question, "listen": Listen, "migration": Migration, "pool": Pool,
}

// hostile are values that a role, a database or a connection string may have set,
// for each row of the table.
var hostile = map[string]string{
	"client_encoding":                     "LATIN1",
	"DateStyle":                           "German",
	"IntervalStyle":                       "iso_8601",
	"TimeZone":                            "Asia/Kolkata",
	"extra_float_digits":                  "-3",
	"bytea_output":                        "escape",
	"standard_conforming_strings":         "off",
	"array_nulls":                         "off",
	"search_path":                         "elsewhere",
	"quote_all_identifiers":               "on",
	"role":                                "tenure_group",
	"row_security":                        "on",
	"session_replication_role":            "replica",
	"default_table_access_method":         "other_heap",
	"default_transaction_isolation":       "serializable",
	"default_transaction_deferrable":      "on",
	"default_transaction_read_only":       "on",
	"exit_on_error":                       "on",
	"synchronous_commit":                  "off",
	"statement_timeout":                   "7s",
	"lock_timeout":                        "3",
	"idle_session_timeout":                "1h",
	"idle_in_transaction_session_timeout": "1h",
	"transaction_timeout":                 "7s",
	"client_connection_check_interval":    "0",
	"tcp_user_timeout":                    "77",
	"tcp_keepalives_idle":                 "77",
	"tcp_keepalives_interval":             "77",
	"tcp_keepalives_count":                "77",
	"client_min_messages":                 "error",
	"jit":                                 "on",
	"plan_cache_mode":                     "auto",
	"enable_seqscan":                      "off",
	IncarnationSetting:                    "13",
}

// Each row of the table holds on every connection that it names, whatever set the
// parameters to something else: the role, the database, or the connection string.
func TestSettingsHoldOnEveryConnection(t *testing.T) {
	t.Parallel()
	for _, version := range pgtest.Versions(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{Version: version})
			testSettings(t, server)
		})
	}
}

func testSettings(t *testing.T, server *pgtest.Server) {
	// A migration keeps the role tenure_group, which must be a superuser to set session_replication_role.
	run(t, server, "CREATE ROLE tenure_group SUPERUSER", "CREATE ROLE app LOGIN SUPERUSER", "GRANT tenure_group TO app", "CREATE DATABASE app")
	execute(t, server.DSNFor("postgres", "app"), "CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler")
	limits := Limits{Lease: 9 * time.Second, Statement: 2 * time.Second, Lock: time.Second, Idle: 9 * time.Second, Incarnation: 4}
	reference := server.Conn(t)
	present := slices.DeleteFunc(slices.Clone(table), func(s setting) bool {
		return s.name != IncarnationSetting && ask(t, reference, "SELECT coalesce(current_setting($1, true), 'of a later release')", s.name) == "of a later release"
	})
	dsn := server.DSNFor("app", "app")
	for source, set := range map[string]func(name, value string){
		"role": func(name, value string) {
			run(t, server, "ALTER ROLE app SET "+quoteSetting(name)+" = '"+value+"'")
		},
		"database": func(name, value string) {
			if name != "role" { // PostgreSQL ignores it
				run(t, server, "ALTER DATABASE app SET "+quoteSetting(name)+" = '"+value+"'")
			}
		},
		"connection string": func(name, value string) { dsn = withOption(dsn, name, value) },
	} {
		for _, s := range present {
			set(s.name, hostile[s.name])
		}
		for name, use := range uses {
			t.Run(source+"/"+name, func(t *testing.T) {
				conn := dialFor(t, dsn, use, limits)
				for _, s := range present {
					if s.on&use == 0 {
						continue
					}
					got := ask(t, conn, "SELECT current_setting($1)", s.name)
					want := ask(t, reference, "SELECT set_config($1, $2, true)", s.name, s.value(limits)) // as PostgreSQL shows it
					if got != want {
						t.Errorf("%s: got %s, want %s", s.name, got, want)
					}
				}
			})
		}
		run(t, server, "ALTER ROLE app RESET ALL", "ALTER DATABASE app RESET ALL")
		dsn = server.DSNFor("app", "app")
	}
}

func dialFor(t *testing.T, dsn string, use Use, limits Limits) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := New(clocks.System()).Connect(t.Context(), config, Options{Use: use, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// ask returns the only value of a statement.
func ask(t *testing.T, conn *pgx.Conn, statement string, args ...any) (value string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), statement, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

func run(t *testing.T, server *pgtest.Server, statements ...string) {
	t.Helper()
	execute(t, server.DSN(), statements...)
}

func execute(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range statements {
		pgtest.Exec(t, conn, statement)
	}
}

func quoteSetting(name string) string {
	return pgx.Identifier(strings.Split(name, ".")).Sanitize()
}

func withOption(dsn, name, value string) string {
	return dsn + "&options=" + strings.ReplaceAll(url.QueryEscape("-c "+name+"="+strings.ReplaceAll(value, " ", `\ `)), "+", "%20")
}

// What only a superuser may set is refused with the statement that takes it back.
func TestFixedSettingIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	run(t, server, "CREATE ROLE app LOGIN", "CREATE DATABASE app")
	for set, mend := range map[string]string{
		"ALTER ROLE app SET":                 "ALTER ROLE app RESET session_replication_role",
		"ALTER DATABASE app SET":             "ALTER DATABASE app RESET session_replication_role",
		"ALTER ROLE app IN DATABASE app SET": "ALTER ROLE app IN DATABASE app RESET session_replication_role",
		"ALTER SYSTEM SET":                   "ALTER SYSTEM RESET session_replication_role",
	} {
		run(t, server, set+" session_replication_role = replica", "SELECT pg_reload_conf()")
		config, err := pgx.ParseConfig(server.DSNFor("app", "app"))
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; { // a reload takes a moment
			conn, dialErr := New(clocks.System()).Connect(t.Context(), config, Options{Use: Question})
			if dialErr != nil || time.Now().After(deadline) {
				err = dialErr
				break
			}
			conn.Close(t.Context())
		}
		if !errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), mend) {
			t.Errorf("%s: %v; want ErrPrivilege and %q", set, err, mend)
		}
		run(t, server, mend, "SELECT pg_reload_conf()")
	}
}

// The table says everything once, and why.
func TestTableHasEachSettingOnce(t *testing.T) {
	seen := map[string]Use{}
	for _, s := range table {
		if s.why == "" || s.on == 0 || s.on&seen[s.name] != 0 {
			t.Errorf("%s: on %b, before on %b, because %q", s.name, s.on, seen[s.name], s.why)
		}
		seen[s.name] |= s.on
	}
	for name := range hostile {
		if seen[name] == 0 {
			t.Errorf("%s is tested and not in the table", name)
		}
	}
	for name := range seen {
		if hostile[name] == "" {
			t.Errorf("no test for %s", name)
		}
	}
	names, values := settings(Watch, Limits{Lease: 40 * time.Second})
	if at := slices.Index(names, "tcp_keepalives_interval"); at < 0 || values[at] != "10" {
		t.Errorf("%v %v", names, values)
	}
}
