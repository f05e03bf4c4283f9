package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/schema"
)

// unfit are settings of a database user or a connection that would change what
// values mean, or end connections.
var unfit = map[string]string{
	"client_encoding":               "LATIN1",
	"DateStyle":                     "German",
	"IntervalStyle":                 "sql_standard",
	"TimeZone":                      "Asia/Kolkata",
	"extra_float_digits":            "-15",
	"bytea_output":                  "escape",
	"standard_conforming_strings":   "off",
	"array_nulls":                   "off",
	"default_transaction_read_only": "on",
	"idle_session_timeout":          "1s",
	"statement_timeout":             "2s",
	"lock_timeout":                  "1",
	"search_path":                   "elsewhere",
	"quote_all_identifiers":         "on",
}

// Whatever settings a database user has, a node opens, leads, and reads what it
// wrote.
func TestNodesOverrideUnfitSettings(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for name, value := range unfit {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := server.Database(t)
			account := "user_" + strings.ToLower(name)
			config, err := pgx.ParseConfig(database)
			if err != nil {
				t.Fatal(err)
			}
			exec(t, backendOn(t, database, Config{}), fmt.Sprintf("CREATE ROLE %s LOGIN", account))
			exec(t, backendOn(t, database, Config{}), fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s", config.Database, account))
			exec(t, backendOn(t, database, Config{}), fmt.Sprintf("GRANT ALL ON SCHEMA public TO %s", account))
			usual := backendOn(t, server.DSNFor(account, config.Database), Config{})
			const role = "zählwerk-漢"
			first := open(t, usual)
			before := first.take(role).Term

			exec(t, backendOn(t, database, Config{}), fmt.Sprintf("ALTER ROLE %s SET %s = %s", account, name, schema.Literal(value)))
			odd := backendOn(t, server.DSNFor(account, config.Database), Config{})
			second := open(t, odd)
			second.refused(role)
			second.beat()
			first.release(role, history.EndResigned)
			if after := second.take(role).Term; after <= before {
				t.Errorf("term %d follows term %d", after, before)
			}
			leaders, err := odd.Leaders(t.Context())
			if err != nil || len(leaders) != 1 || leaders[0].Role != role {
				t.Errorf("leaders: %+v, %v", leaders, err)
			}
			if n := row[int](t, usual, "SELECT count(*)::int FROM {terms}"); n != 1 {
				t.Errorf("%d rows for one role", n)
			}
		})
	}
}

// A user for whom another current role is set opens sessions as itself, and its
// migrations belong to that role.
func TestSessionUserIsUsed(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	admin := backendOn(t, server.DSN(), Config{})
	exec(t, admin, "CREATE ROLE owner")
	exec(t, admin, "CREATE ROLE app LOGIN")
	exec(t, admin, "GRANT owner TO app")
	exec(t, admin, "CREATE SCHEMA work AUTHORIZATION owner")
	exec(t, admin, "ALTER ROLE app SET role = 'owner'")
	b := backendOn(t, server.DSNFor("app", "postgres"), Config{Schema: "work"})
	for _, f := range b.Diagnose(t.Context()) {
		if f.Severity == doctor.Failure {
			t.Errorf("before the first node: %+v", f)
		}
	}
	first, second := open(t, b), open(t, b)
	first.take("scheduler")
	second.refused("scheduler")
	first.beat()
	if owner := row[string](t, b, "SELECT tableowner::text FROM pg_tables WHERE schemaname = 'work' AND tablename = 'tenure_terms'"); owner != "owner" {
		t.Errorf("the tables belong to %s, want owner", owner)
	}
	for _, f := range b.Diagnose(t.Context()) {
		if f.Severity == doctor.Failure {
			t.Errorf("with nodes: %+v", f)
		}
	}
}

// A server whose configuration makes it read-only is fenced on purpose.
func TestReadOnlyServerIsFenced(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := backendOn(t, server.DSN(), Config{})
	leader := open(t, b)
	leader.take("scheduler")
	for _, statement := range []string{
		"CREATE ROLE unfenced SUPERUSER LOGIN",
		"ALTER ROLE unfenced SET default_transaction_read_only = off",
		"CREATE DATABASE unfenced",
		"ALTER DATABASE unfenced SET default_transaction_read_only = off",
	} {
		exec(t, b, statement)
	}
	blind := map[string]string{
		"connection string": server.DSN() + "&default_transaction_read_only=off",
		"role":              server.DSNFor("unfenced", "postgres"),
		"database":          server.DSNFor("postgres", "unfenced"),
	}

	server.Configure(t, map[string]string{"default_transaction_read_only": "on"})
	eventuallyRefused(t, b)
	_, err := leader.Heartbeat(tenure.Load{})
	if !errors.Is(err, tenure.ErrSessionLost) || !errors.Is(err, dberr.ErrReadOnly) {
		t.Errorf("the leader's heartbeat: %v; want the session lost because the server is read-only", err)
	}
	_, err = tryOpen(t, b)
	if !errors.Is(err, dberr.ErrReadOnly) || errors.Is(err, tenure.ErrRefused) || !strings.Contains(err.Error(), "ALTER SYSTEM RESET") {
		t.Errorf("a session: %v; want ErrReadOnly, which passes, and how to lift it", err)
	}
	// A setting beneath the server's hides the fence from a node.
	for where, dsn := range blind {
		if p, err := tryOpen(t, backendOn(t, dsn, Config{})); err != nil {
			t.Errorf("a session with the setting in its %s: %v; want it open", where, err)
		} else {
			p.beat()
			p.Abort()
		}
	}
	if _, err := b.Leaders(t.Context()); err != nil {
		t.Errorf("questions must be answered still: %v", err)
	}
	b.reader.CloseIdle() // a new connection does not lift the fence either
	if err := b.Retire(t.Context(), "scheduler", "test"); !errors.Is(err, dberr.ErrReadOnly) {
		t.Errorf("a change on the fenced server: %v; want ErrReadOnly", err)
	}
	findings := b.Diagnose(t.Context())
	if last := findings[len(findings)-1]; last.Name != "read-only" || last.Severity != doctor.Failure {
		t.Errorf("the diagnosis: %+v", findings)
	}

	server.Configure(t, map[string]string{"default_transaction_read_only": "off"})
	p, err := tryOpen(t, b)
	for err != nil && errors.Is(err, dberr.ErrReadOnly) { // until the reload has reached new sessions
		p, err = tryOpen(t, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	leader.network.Close()
	p.win("scheduler")
}

// eventuallyRefused waits until a reload of the configuration has fenced the
// server.
func eventuallyRefused(t *testing.T, b *Backend) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		p, err := tryOpen(t, b)
		if err != nil {
			return
		}
		p.Abort()
	}
	t.Fatal("the server is never fenced")
}

// A primary is found beside a server that was fenced.
func TestPrimaryIsFoundBesideFencedServer(t *testing.T) {
	t.Parallel()
	fenced := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"default_transaction_read_only": "on"}})
	primary := pgtest.Start(t, pgtest.Options{})
	dsn := fmt.Sprintf("host=%s,%s port=%d,%d user=postgres dbname=postgres connect_timeout=30", fenced.Host, primary.Host, fenced.Port, primary.Port)
	open(t, backendOn(t, dsn, Config{})).take("scheduler")
}

// A database that is not in UTF-8 elects for names of ASCII characters. Only
// attempts for other names fail.
func TestDatabaseNotInUTF8ElectsForASCIINames(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	admin := backendOn(t, server.DSN(), Config{})
	for _, encoding := range []string{"LATIN1", "SQL_ASCII", "EUC_JP"} {
		name := "db_" + strings.ToLower(encoding)
		exec(t, admin, fmt.Sprintf("CREATE DATABASE %s ENCODING '%s' LOCALE 'C' TEMPLATE template0", name, encoding))
		b := backendOn(t, server.DSNFor("postgres", name), Config{})
		p := open(t, b)
		attempts, err := p.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole("zähler")}, {Role: tenure.NamedRole("counter")}})
		if err != nil {
			t.Fatal(err)
		}
		if attempts[0].Outcome != tenure.OutcomeFailed || !errors.Is(attempts[0].Err, tenure.ErrInvalidRole) || !strings.Contains(attempts[0].Err.Error(), encoding) {
			t.Errorf("%s: %+v; want it failed for its name", encoding, attempts[0])
		}
		if attempts[1].Outcome != tenure.OutcomeGranted {
			t.Errorf("%s: %+v; want it granted", encoding, attempts[1])
		}
		warned := false
		for _, f := range b.Diagnose(t.Context()) {
			warned = warned || f.Name == "encoding" && f.Severity == doctor.Warning && strings.Contains(f.Detail, encoding)
		}
		if !warned {
			t.Errorf("%s: the diagnosis does not warn", encoding)
		}
	}
}

// A node whose name or labels the database's encoding does not have is refused, since
// attempts to open a session would fail forever. A question about such a name is
// invalid; it is no failure of the connection.
func TestNamesOutsideEncodingAreRefused(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	exec(t, backendOn(t, server.DSN(), Config{}), "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	b := backendOn(t, server.DSNFor("postgres", "latin"), Config{})
	p := open(t, b, func(o *peerOptions) { o.name = "zähler" })
	err := p.WriteDescription(tenure.Description{Status: tenure.StatusActive, Labels: map[string]string{"zone": "☃"}})
	if !errors.Is(err, tenure.ErrInvalidConfig) || errors.Is(err, tenure.ErrSessionLost) {
		t.Errorf("WriteDescription: got error %v, want ErrInvalidConfig", err)
	}
	for what, change := range map[string]func(*peerOptions){
		"name":        func(o *peerOptions) { o.name = "☃" },
		"unique name": func(o *peerOptions) { o.name, o.unique = "☃", true },
		"label":       func(o *peerOptions) { o.description.Labels = map[string]string{"zone": "☃"} },
	} {
		_, err := tryOpen(t, b, change)
		if !errors.Is(err, tenure.ErrRefused) || !errors.Is(err, tenure.ErrInvalidConfig) || !strings.Contains(err.Error(), "LATIN1") {
			t.Errorf("%s: got error %v, want ErrRefused and ErrInvalidConfig with the encoding", what, err)
		}
	}
	if _, err := b.Leaders(t.Context(), "☃"); !errors.Is(err, tenure.ErrInvalidConfig) || errors.Is(err, tenure.ErrConnection) {
		t.Errorf("Leaders: got error %v, want ErrInvalidConfig", err)
	}
}

// A node uses PostgreSQL's own operators. In a schema that is searched by
// default, another program could define an operator that fits a node's
// statements better.
func TestOperatorsOfOtherSchemasAreNotUsed(t *testing.T) {
	t.Parallel()
	b := backendOn(t, pgtest.Shared(t).Database(t), Config{Schema: "tenure"})
	for _, left := range []string{"smallint", "integer", "bigint"} {
		exec(t, b, fmt.Sprintf(`
			CREATE FUNCTION public.multiplied(%[1]s, interval) RETURNS interval LANGUAGE plpgsql
				AS 'BEGIN RAISE EXCEPTION ''an operator of another schema was used''; END';
			CREATE OPERATOR public.* (LEFTARG = %[1]s, RIGHTARG = interval, FUNCTION = public.multiplied)`, left))
	}
	first, second := open(t, b), open(t, b)
	led := first.take("scheduler")
	second.refused("scheduler")
	first.Abort()
	if next := second.win("scheduler"); next.Previous != led.Term {
		t.Errorf("term %d follows %d, want it after %d", next.Term, next.Previous, led.Term)
	}
}
