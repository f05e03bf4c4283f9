package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// status returns the JSON output of "tenure status".
func (p place) status(t *testing.T, args ...string) roles.StatusRecord {
	t.Helper()
	var status roles.StatusRecord
	invoke(t, p.with(append([]string{"status", "-o", "json"}, args...)...)...).want(t, console.ExitDone).decode(t, &status)
	return status
}

// The command shows leaders with their sessions, vacant roles, and sessions of
// other programs.
func TestStatusShowsLeadersAndSessions(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("acquire", "--role", "ancient")...).want(t, console.ExitDone)
	node := place.run(t, "--role", "billing", "--name", "one", "--address", "10.0.0.7", "--http-port", "8080", "--grpc-port", "9090", "--label", "zone=a")
	acquired := node.await("acquired")

	status := place.status(t)
	if len(status.Roles) != 2 || status.Roles[0].Role != "ancient" || status.Roles[1].Role != "billing" {
		t.Fatalf("roles %+v", status.Roles)
	}
	if vacant := status.Roles[0]; vacant.Leader != nil || len(vacant.Sessions) != 0 {
		t.Errorf("%+v", vacant)
	}
	billing := status.Roles[1]
	if leader := billing.Leader; leader == nil || leader.NodeName != "one" || leader.Term != acquired.term() ||
		leader.Node.String() != acquired["node"] || leader.ValidSeconds <= 0 || leader.ValidSeconds > 10 {
		t.Fatalf("leader %+v", leader)
	}
	if leader := billing.Leader; leader.Address != "10.0.0.7" || leader.HTTPPort != 8080 || leader.GRPCPort != 9090 || leader.Labels["zone"] != "a" {
		t.Errorf("leader %+v; want the address, the ports and the label of its node", leader)
	}
	if len(billing.Sessions) != 1 {
		t.Fatalf("sessions %+v", billing.Sessions)
	}
	session := billing.Sessions[0]
	if session.State != roles.StateLed || session.Node == nil || session.Node.String() != acquired["node"] ||
		session.PID == 0 || session.User != "postgres" || session.Client != "127.0.0.1" || !strings.HasPrefix(session.Application, "tenure") {
		t.Errorf("session %+v", session)
	}

	text := invoke(t, place.with("status")...).want(t, console.ExitDone).stdout
	rows := strings.Split(text, "\n")
	if len(rows) != 6 || !strings.HasPrefix(rows[0], "1 of 2 roles has no leader: ancient for ") || !strings.HasSuffix(rows[0], "; 1 node is alive.") ||
		!strings.HasPrefix(rows[2], "ROLE") || !strings.HasPrefix(rows[3], "ancient  vacant") || !strings.HasPrefix(rows[4], "billing  led     one   1") {
		t.Errorf("table:\n%s", text)
	}
}

// Programs that hold a key are shown, also without a schema.
func TestStatusShowsForeignHolders(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	config, err := pgx.ParseConfig(place.server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = "psql"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	pgtest.Exec(t, conn, "SELECT pg_advisory_lock(51), pg_advisory_lock_shared(52, -53)")
	for _, args := range [][]string{{"--key", "51"}, {"--key1", "52", "--key2", "-53"}} {
		status := place.status(t, args...)
		if len(status.Roles) != 1 || status.Roles[0].Leader != nil || len(status.Roles[0].Sessions) != 1 {
			t.Fatalf("%v: %+v", args, status)
		}
		session := status.Roles[0].Sessions[0]
		if session.State != roles.StateForeign || session.Node != nil || session.PID != int32(conn.PgConn().PID()) || session.Application != "psql" {
			t.Errorf("%v: %+v", args, session)
		}
	}
	text := invoke(t, place.with("status", "--key", "51")...).want(t, console.ExitDone).stdout
	if !strings.HasPrefix(text, "No role is led; another program holds 1 role: key:51") || !strings.Contains(text, "; nodes and outages cannot be read.\nNodes are not known: the schema ") ||
		!strings.Contains(text, "key:51  foreign") || !strings.Contains(text, "psql") {
		t.Errorf("table:\n%s", text)
	}
}

// An outage of the database that ended within the last hour is named, with its age, by
// status and by the history of its time.
func TestOutageIsNamed(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	age := func(ended string) {
		t.Helper()
		table := pgx.Identifier{place.schema, "tenure_node_history"}.Sanitize()
		_, err := place.server.Conn(t).Exec(t.Context(), "UPDATE "+table+" SET at = now() - $1::interval, outage_since = now() - $1::interval - interval '38 s'", ended)
		if err != nil {
			t.Fatal(err)
		}
	}
	const outage = "No node reached the database for 38 s, from "
	for _, command := range []string{"status", "history"} {
		if text := invoke(t, place.with(command)...).want(t, console.ExitDone).stdout; strings.Contains(text, outage) {
			t.Errorf("%s without an outage: %s", command, text)
		}
	}
	age("0 s")
	for _, command := range []string{"status", "history"} {
		text := invoke(t, place.with(command)...).want(t, console.ExitDone).stdout
		if !strings.Contains(text, outage) || !strings.Contains(text, " s ago; ") || !strings.Contains(text, "stood still.\n\nROLE ") {
			t.Errorf("%s: %s", command, text)
		}
	}
	place.run(t, "--role", "other", "--name", "two").await("acquired")
	if text := invoke(t, place.with("history", "--role", "other")...).want(t, console.ExitDone).stdout; strings.Contains(text, outage) {
		t.Errorf("the history of another role: %s", text)
	}
	age("2 h")
	if text := invoke(t, place.with("status")...).want(t, console.ExitDone).stdout; strings.Contains(text, outage) {
		t.Errorf("status two hours later: %s", text)
	}
}

// A user who may not read outages learns that they are not known, and why. Without
// that sentence, status would claim that there was none.
func TestStatusNamesOutagesThatItCannotRead(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "one").await("acquired")
	user, conn := "blind_"+place.schema, place.server.Conn(t)
	quoted, schema := pgx.Identifier{user}.Sanitize(), pgx.Identifier{place.schema}.Sanitize()
	for _, statement := range []string{
		"CREATE ROLE " + quoted + " LOGIN",
		"GRANT USAGE ON SCHEMA " + schema + " TO " + quoted,
		"GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + quoted,
		"REVOKE SELECT ON " + pgx.Identifier{place.schema, "tenure_node_history"}.Sanitize() + " FROM " + quoted,
	} {
		pgtest.Exec(t, conn, statement)
	}
	as := func(args ...string) result {
		return invoke(t, append(args, "--dsn", place.server.DSNFor(user, "postgres"), "--schema", place.schema)...).want(t, console.ExitDone)
	}
	const cause = "\nOutages are not known: a privilege is missing: read outages: "
	text := as("status").stdout
	if !strings.HasPrefix(text, "The role billing is led; 1 node is alive; outages cannot be read."+cause) || !strings.Contains(text, "table tenure_node_history") {
		t.Errorf("status: %s", text)
	}
	var status roles.StatusRecord
	as("status", "-o", "json").decode(t, &status)
	if status.Well || len(status.Problems) != 1 || status.Problems[0].Kind != "unreadable" || status.Problems[0].Names[0] != "outages" ||
		len(status.Problems[0].Causes) != 1 || !strings.Contains(status.Problems[0].Causes[0], "tenure_node_history") {
		t.Errorf("JSON: %+v", status)
	}
	if text := as("history").stdout; !strings.HasPrefix(text, cause[1:]) || !strings.Contains(text, "\nbilling ") {
		t.Errorf("history: %s", text)
	}
}

// If no role has ever been led, the command prints that, without an error.
func TestStatusWithoutRolesSucceeds(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("migrate")...).want(t, console.ExitDone)
	if status := place.status(t); len(status.Roles) != 0 {
		t.Errorf("%+v", status)
	}
	if got := invoke(t, place.with("status", "--role", "never")...).want(t, console.ExitUsage); !strings.Contains(got.stderr, "no node has ever been a candidate for the role: never") {
		t.Errorf("%s", got.stderr)
	}
}

// A user who may only read can use status and observe, and learns what is
// missing for the rest.
func TestReadOnlyUserCanUseStatusAndObserve(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	place := place{server, server.Schema(t)}
	node := place.run(t, "--role", "billing", "--name", "one")
	node.await("acquired")

	user, conn := "reader_"+place.schema, server.Conn(t)
	quoted := pgx.Identifier{user}.Sanitize()
	schema := pgx.Identifier{place.schema}.Sanitize()
	for _, statement := range []string{
		"CREATE ROLE " + quoted + " LOGIN",
		"GRANT USAGE ON SCHEMA " + schema + " TO " + quoted,
		"GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + quoted,
	} {
		pgtest.Exec(t, conn, statement)
	}
	as := func(args ...string) []string {
		return append(args, "--dsn", server.DSNFor(user, "postgres"), "--schema", place.schema)
	}

	if text := invoke(t, as("status")...).want(t, console.ExitDone).stdout; !strings.Contains(text, "billing  led    one") {
		t.Errorf("status: %s", text)
	}
	if line, _ := launch(t, as("observe")...).line(); !strings.HasSuffix(line, fmt.Sprintf("one leads billing, term %d", place.status(t).Roles[0].Leader.Term)) {
		t.Errorf("observe: %s", line)
	}
	for _, args := range [][]string{
		{"run", "--role", "billing"}, {"acquire", "--role", "billing"}, {"step-down", "--role", "billing"},
	} {
		got := invoke(t, as(args...)...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, "privilege") && !strings.Contains(got.stderr, "GRANT") {
			t.Errorf("%v: %s", args, got.stderr)
		}
	}
}

// The verdict covers the features that are installed, and status creates no tables of the
// others. A user who may not read a feature learns that.
func TestStatusCoversInstalledFeaturesOnly(t *testing.T) {
	t.Parallel()
	place := newAlertPlace(t)
	status := place.status(t)
	if status.Well || !strings.HasSuffix(status.Summary, "; 1 alert fires: down (critical).") || len(status.Problems) != 1 ||
		status.Problems[0].Kind != "firing_alert" || status.Problems[0].Names[0] != "down (critical)" {
		t.Errorf("%+v", status)
	}
	if text := invoke(t, place.with("status")...).want(t, console.ExitDone).stdout; !strings.HasPrefix(text, status.Summary+"\n") {
		t.Errorf("text %q, JSON %q", text, status.Summary)
	}
	conn := place.server.Conn(t)
	var tables int
	err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename ~ 'schedules|processors'", place.schema).Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("%d tables of schedules and processors: %v", tables, err)
	}
	user := pgx.Identifier{"limited_" + place.schema}.Sanitize()
	schema := pgx.Identifier{place.schema}.Sanitize()
	for _, statement := range []string{
		"CREATE ROLE " + user + " LOGIN",
		"GRANT USAGE ON SCHEMA " + schema + " TO " + user,
		"GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + user,
		"REVOKE SELECT ON " + pgx.Identifier{place.schema, "tenure_alert_states"}.Sanitize() + " FROM " + user,
	} {
		pgtest.Exec(t, conn, statement)
	}
	text := invoke(t, "status", "--dsn", place.server.DSNFor("limited_"+place.schema, "postgres"), "--schema", place.schema).want(t, console.ExitDone).stdout
	if !strings.Contains(text, "; alerts cannot be read.") {
		t.Errorf("as a user who may not read alerts: %s", text)
	}
	migrations := pgx.Identifier{place.schema, "tenure_migrations"}.Sanitize()
	pgtest.Exec(t, conn, "INSERT INTO "+migrations+" (feature, version) VALUES ('alerts', 1000)")
	if newer := place.status(t); newer.Well || !strings.HasSuffix(newer.Summary, "; alerts cannot be read.") {
		t.Errorf("with tables of a newer release: %+v", newer)
	}
}
