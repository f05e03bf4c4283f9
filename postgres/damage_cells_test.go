package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/schema"
)

// damageCell is one way in which a database differs from what Tenure made.
type damageCell struct {
	name string
	sql  string // by the superuser, in the damaged database
}

// unnoticed are the names of cells that need not be noticed: nothing that Tenure relies on has
// changed, or a node mends it when it opens, or other rights let it work.
var unnoticed = regexp.MustCompile(` emptied$|^all rows gone$| with a column$| with an index$| with always trigger | with a trigger after rows$| without comment$|begins? again$| sets | owner$| without privileges$`)

// cells reads the ways to damage a database from its catalogs, so that a new table or
// column is in them. app is the user of the nodes, who owns everything.
func cells(t *testing.T, dsn string) []damageCell {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // a database that is copied must have no connection
	var all []damageCell
	// each adds a cell for each row of a query, whose columns are the arguments of the formats.
	each := func(query string, formats ...[2]string) {
		t.Helper()
		rows, err := conn.Query(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, values := range found {
			for _, format := range formats {
				all = append(all, damageCell{fmt.Sprintf(format[0], values...), fmt.Sprintf(format[1], values...)})
			}
		}
	}
	const ours = `FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace `
	each(`SELECT c.oid::regclass::text, true `+ours+`AND relkind = 'r' ORDER BY 1`,
		[2]string{"%[1]s emptied", "SET session_replication_role = replica; TRUNCATE %[1]s"},
		[2]string{"%[1]s dropped", "DROP TABLE %[1]s CASCADE"})
	// Fewer ways for features: their tables are compared in the same way.
	notFeatures := "AND NOT c.relname = ANY (" + tablesOfFeatures() + ") "
	each(`SELECT c.oid::regclass::text, true `+ours+notFeatures+`AND relkind = 'r' ORDER BY 1`,
		[2]string{"%[1]s with row security", "ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"},
		[2]string{"%[1]s of another owner", "ALTER TABLE %[1]s OWNER TO stranger"},
		[2]string{"%[1]s without privileges", "REVOKE ALL ON %[1]s FROM app"},
		[2]string{"%[1]s with a trigger before rows", strangeTrigger + "CREATE TRIGGER strange BEFORE INSERT OR UPDATE ON %[1]s FOR EACH ROW EXECUTE FUNCTION strange()"},
		[2]string{"%[1]s with a trigger after rows", strangeTrigger + "CREATE TRIGGER strange AFTER INSERT OR UPDATE ON %[1]s FOR EACH ROW EXECUTE FUNCTION strange()"},
		[2]string{"%[1]s with a check", "ALTER TABLE %[1]s ADD CHECK (pg_backend_pid() < 0) NOT VALID"},
		[2]string{"%[1]s without replica identity", "CREATE PUBLICATION everything FOR ALL TABLES; ALTER TABLE %[1]s REPLICA IDENTITY NOTHING"},
		[2]string{"%[1]s with a rule", "CREATE RULE nothing AS ON UPDATE TO %[1]s DO INSTEAD NOTHING"},
		[2]string{"%[1]s with a child", "CREATE TABLE child () INHERITS (%[1]s)"},
		[2]string{"%[1]s with a column", "ALTER TABLE %[1]s ADD COLUMN extra text"},
		[2]string{"%[1]s with an index", "CREATE INDEX ON %[1]s ((1))"},
		[2]string{"%[1]s renamed", "ALTER TABLE %[1]s RENAME TO elsewhere"},
	)
	each(`SELECT c.oid::regclass::text, CASE relpersistence WHEN 'u' THEN 'LOGGED' ELSE 'UNLOGGED' END `+ours+`AND relkind = 'r' ORDER BY 1`,
		[2]string{"%[1]s %[2]s", "ALTER TABLE %[1]s SET %[2]s"})
	const columns = `FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
		AND a.attnum > 0 AND NOT a.attisdropped `
	core := columns + notFeatures
	each(`SELECT c.oid::regclass::text, a.attname `+core+`ORDER BY 1, 2`, [2]string{"%s.%s dropped", "ALTER TABLE %s DROP COLUMN %s CASCADE"})
	each(`SELECT c.oid::regclass::text, string_agg('DROP COLUMN ' || quote_ident(a.attname) || ' CASCADE', ', ') `+columns+`
		AND c.relname = ANY (`+tablesOfFeatures()+`) GROUP BY 1 ORDER BY 1`, [2]string{"%[1]s without its columns", "ALTER TABLE %[1]s %[2]s"})
	each(`SELECT c.oid::regclass::text, a.attname `+core+`AND a.atthasdef ORDER BY 1, 2`,
		[2]string{"%s.%s without default", "ALTER TABLE %s ALTER COLUMN %s DROP DEFAULT"})
	each(`SELECT c.oid::regclass::text, a.attname `+columns+`AND a.attidentity <> '' ORDER BY 1, 2`,
		[2]string{"%s.%s without identity", "ALTER TABLE %s ALTER COLUMN %s DROP IDENTITY"})
	each(`SELECT c.oid::regclass::text, a.attname `+core+`AND a.attnotnull AND a.attidentity = ''
		AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey::int2[])) ORDER BY 1, 2`,
		[2]string{"%s.%s nullable", "ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL"})
	each(`SELECT c.oid::regclass::text, a.attname `+core+`AND NOT a.attnotnull ORDER BY 1, 2`,
		[2]string{"%s.%s not nullable", "DELETE FROM %[1]s WHERE %[2]s IS NULL; ALTER TABLE %[1]s ALTER COLUMN %[2]s SET NOT NULL"})
	each(`SELECT c.oid::regclass::text, a.attname `+core+`AND a.atttypid = 'integer'::regtype AND NOT EXISTS (
			SELECT FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid WHERE d.refobjid = c.oid AND d.refobjsubid = a.attnum)
			AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND a.attnum = ANY (t.tgattr::int2[]))
		ORDER BY 1, 2`,
		[2]string{"%s.%s of another type", "ALTER TABLE %s ALTER COLUMN %s TYPE numeric"})
	each(`SELECT c.conrelid::regclass::text, quote_ident(c.conname) FROM pg_constraint c WHERE c.connamespace = 'public'::regnamespace AND c.conrelid <> 0
		AND c.contype <> 'n' ORDER BY 1, 2`,
		[2]string{"%[1]s without %[2]s", "ALTER TABLE %s DROP CONSTRAINT %s CASCADE"})
	each(`SELECT c.oid::regclass::text `+ours+`AND relkind = 'i' AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = c.oid) ORDER BY 1`,
		[2]string{"without index %s", "DROP INDEX %s"})
	each(`SELECT c.oid::regclass::text `+ours+`AND relkind = 'i' ORDER BY 1`,
		[2]string{"invalid index %s", "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '%s'::regclass"})
	each(`SELECT t.tgrelid::regclass::text, quote_ident(t.tgname) FROM pg_trigger t WHERE NOT t.tgisinternal ORDER BY 1, 2`,
		[2]string{"%[1]s without trigger %[2]s", "DROP TRIGGER %[2]s ON %[1]s"},
		[2]string{"%[1]s with disabled trigger %[2]s", "ALTER TABLE %[1]s DISABLE TRIGGER %[2]s"},
		[2]string{"%[1]s with replica trigger %[2]s", "ALTER TABLE %[1]s ENABLE REPLICA TRIGGER %[2]s"},
		[2]string{"%[1]s with always trigger %[2]s", "ALTER TABLE %[1]s ENABLE ALWAYS TRIGGER %[2]s"})
	each(`SELECT p.oid::regprocedure::text, p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') FROM pg_proc p
		WHERE p.pronamespace = 'public'::regnamespace ORDER BY 1`,
		[2]string{"without %[1]s", "DROP FUNCTION %[1]s CASCADE"},
		[2]string{"%[1]s of another owner", "ALTER FUNCTION %[1]s OWNER TO stranger"},
		[2]string{"%[1]s without privileges", "REVOKE ALL ON FUNCTION %[1]s FROM public, app"},
		[2]string{"%[1]s with a setting", "ALTER FUNCTION %[1]s SET work_mem = '64kB'"})
	each(`SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosqlbody IS NULL ORDER BY 1`,
		[2]string{"%[1]s with another body", "UPDATE pg_proc SET prosrc = 'BEGIN RETURN; END' WHERE oid = '%[1]s'::regprocedure"})
	each(`SELECT c.oid::regclass::text `+ours+`AND relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i') ORDER BY 1`,
		[2]string{"without sequence %s", "DROP SEQUENCE %s CASCADE"},
		[2]string{"%s cycles", "ALTER SEQUENCE %s CYCLE"},
		[2]string{"%s goes down", "ALTER SEQUENCE %s INCREMENT -1"},
		[2]string{"%s without privileges", "REVOKE ALL ON SEQUENCE %s FROM app"})
	each(`SELECT c.oid::regclass::text `+ours+`AND relkind = 'S' ORDER BY 1`, [2]string{"%s begins again", "ALTER SEQUENCE %s RESTART"})
	each(`SELECT c.oid::regclass::text `+ours+`AND relkind = 'v' ORDER BY 1`,
		[2]string{"without view %s", "DROP VIEW %s CASCADE"},
		[2]string{"%s shows nothing", "DO $$ BEGIN EXECUTE 'CREATE OR REPLACE VIEW %[1]s AS SELECT * FROM (' || rtrim(pg_get_viewdef('%[1]s'::regclass), ';') || ') v WHERE false'; END $$"})
	each(`SELECT c.oid::regclass::text, a.attname FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid WHERE c.relnamespace = 'public'::regnamespace AND d.objsubid > 0 ORDER BY 1, 2 LIMIT 10`,
		[2]string{"%s.%s without comment", "COMMENT ON COLUMN %s.%s IS NULL"})
	return append(all, settingCells()...)
}

// strangeTrigger creates a function for triggers, as programs that record changes have it.
const strangeTrigger = "CREATE FUNCTION strange() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "

// tablesOfFeatures is an array of the names of all tables that are not the core's.
func tablesOfFeatures() string {
	var names []string
	for _, f := range schema.Registered() {
		for _, p := range f.Parts {
			if p.Kind == schema.KindTable {
				names = append(names, "'tenure_"+p.Object+"'")
			}
		}
	}
	return "ARRAY[" + strings.Join(names, ", ") + "]"
}

// settingCells change what the server, the database or the user sets.
//
// Set by hand: the damages are what other programs and operators write.
func settingCells() []damageCell {
	var all []damageCell
	for _, setting := range [][2]string{
		{"default_transaction_read_only", "on"}, {"default_transaction_isolation", "serializable"}, {"default_transaction_deferrable", "on"},
		{"statement_timeout", "5s"}, {"lock_timeout", "1ms"}, {"idle_in_transaction_session_timeout", "1ms"}, {"search_path", "nowhere"},
		{"session_replication_role", "replica"}, {"row_security", "off"}, {"quote_all_identifiers", "on"}, {"IntervalStyle", "iso_8601"},
		{"DateStyle", "German"}, {"TimeZone", "Asia/Kolkata"}, {"bytea_output", "escape"}, {"standard_conforming_strings", "off"},
		{"client_encoding", "LATIN1"}, {"extra_float_digits", "-15"}, {"synchronous_commit", "off"}, {"check_function_bodies", "off"},
		{"plan_cache_mode", "force_custom_plan"}, {"enable_indexscan", "off"}, {"client_min_messages", "error"}, {"array_nulls", "off"},
		{"role", "stranger"}, {"exit_on_error", "on"}, {"temp_file_limit", "0"}, {"default_tablespace", "nowhere"},
	} {
		all = append(all,
			damageCell{"database sets " + setting[0], fmt.Sprintf(
				"DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s = %%L', current_database(), '%s'); END $$", setting[0], setting[1])},
			damageCell{"user sets " + setting[0], fmt.Sprintf(
				"DO $$ BEGIN EXECUTE format('ALTER ROLE app IN DATABASE %%I SET %s = %%L', current_database(), '%s'); END $$", setting[0], setting[1])})
	}
	return append(all,
		damageCell{"schema without privileges", "REVOKE ALL ON SCHEMA public FROM app, public, pg_database_owner"},
		damageCell{"schema of another owner", "ALTER SCHEMA public OWNER TO stranger"},
		damageCell{"without pg_try_advisory_lock", "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_try_advisory_lock(bigint) FROM public"},
		damageCell{"without set_config", "REVOKE EXECUTE ON FUNCTION pg_catalog.set_config(text, text, boolean) FROM public"},
		damageCell{"without pg_notify", "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_notify(text, text) FROM public"},
		damageCell{"without pg_locks", "REVOKE SELECT ON pg_catalog.pg_locks FROM public"},
		damageCell{"pg_stat_activity without privileges", "REVOKE SELECT ON pg_catalog.pg_stat_activity FROM public"},
		damageCell{"pg_roles without privileges", "REVOKE SELECT ON pg_catalog.pg_roles FROM public"},
		damageCell{"all rows gone", `SET session_replication_role = replica; DO $$ DECLARE t regclass; BEGIN
			FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP EXECUTE 'TRUNCATE ' || t; END LOOP; END $$`},
		damageCell{"no version", "DELETE FROM tenure_migrations WHERE feature = 'core'"},
		damageCell{"no installation", "DELETE FROM tenure_installation"},
		damageCell{"all sequences begin again", `DO $$ DECLARE s regclass; BEGIN
			FOR s IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S' LOOP EXECUTE 'ALTER SEQUENCE ' || s || ' RESTART'; END LOOP; END $$`},
		damageCell{"a required column", "TRUNCATE tenure_requests; ALTER TABLE tenure_requests ADD COLUMN extra text NOT NULL"},
		damageCell{"fencing index deferrable", `ALTER TABLE tenure_terms DROP CONSTRAINT tenure_terms_role_term_key;
			ALTER TABLE tenure_terms ADD CONSTRAINT tenure_terms_role_term_key UNIQUE (role, term) DEFERRABLE`},
		damageCell{"nodes and terms dropped", "DROP TABLE tenure_nodes, tenure_terms CASCADE"},
	)
}
