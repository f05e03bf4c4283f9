package assign

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// Setup returns the SQL for indexes and triggers of a table. Without the indexes every
// pass reads the whole table. The triggers notify the leader of pending rows and free
// capacity; without them it polls every Config.PollInterval. The table's owner runs the
// SQL; it can be run repeatedly.
func Setup(backend *postgres.Backend, config Config) (sql string, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return "", err
	}
	index := append([]string{pgx.Identifier{config.Columns.Capability}.Sanitize()}, config.order(""))
	notify := slices.Clone(config.Table)
	notify[len(notify)-1] = config.name("tell")
	return strings.NewReplacer(
		"{table}", config.Table.Sanitize(),
		"{pending_index}", config.quoted("pending"),
		"{unfinished_index}", config.quoted("unfinished"),
		"{dead_index}", config.quoted("dead"),
		"{pending_columns}", strings.Join(index, ", "),
		"{order}", config.order(""),
		"{node}", pgx.Identifier{config.Columns.Node}.Sanitize(),
		"{state}", pgx.Identifier{config.Columns.State}.Sanitize(),
		"{pending}", literal(config.States.Pending),
		"{assigned}", literal(config.States.Assigned),
		"{running}", literal(config.States.Running),
		"{dead}", literal(config.States.Dead),
		"{function}", notify.Sanitize(),
		"{on_insert}", config.quoted("insert"),
		"{on_update}", config.quoted("update"),
		"{channel}", literal(schema.Of(backend).Channel(config.topic())),
	).Replace(setup), nil
}

var setup = `CREATE INDEX IF NOT EXISTS {pending_index} ON {table} ({pending_columns}) WHERE {state} = {pending};
CREATE INDEX IF NOT EXISTS {unfinished_index} ON {table} ({node}, {state}) WHERE {state} IN ({assigned}, {running});
CREATE INDEX IF NOT EXISTS {dead_index} ON {table} ({order}) WHERE {state} = {dead};

CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $assign$` + doorbell.TriggerBody + `$assign$;
CREATE OR REPLACE TRIGGER {on_insert} AFTER INSERT ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}({channel});
CREATE OR REPLACE TRIGGER {on_update} AFTER UPDATE OF {state} ON {table}
    FOR EACH ROW WHEN (OLD.{state} IS DISTINCT FROM NEW.{state} AND NEW.{state} NOT IN ({assigned}, {running}))
    EXECUTE FUNCTION {function}({channel});
`

// Grants returns the GRANT statements for the database user of an assigner's
// pool, or of a caller of [Replay].
func Grants(backend *postgres.Backend, config Config, user string) (sql string, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return "", err
	}
	written := []string{config.Columns.State, config.Columns.Node, config.Columns.Attempts, config.Columns.Assignment}
	for i, name := range written {
		written[i] = pgx.Identifier{name}.Sanitize()
	}
	var all strings.Builder
	all.WriteString(backend.ApplicationGrants(user))
	read := config.columns()
	for i, name := range read {
		read[i] = pgx.Identifier{name}.Sanitize()
	}
	to := pgx.Identifier{user}.Sanitize()
	if len(config.Table) == 2 {
		fmt.Fprintf(&all, "GRANT USAGE ON SCHEMA %s TO %s;\n", config.Table[:1].Sanitize(), to)
	}
	fmt.Fprintf(&all, "GRANT SELECT (%s), UPDATE (%s) ON TABLE %s TO %s;\n", strings.Join(read, ", "), strings.Join(written, ", "), config.Table.Sanitize(), to)
	return all.String(), nil
}

// quoted returns the quoted name of an object of the table.
func (c Config) quoted(what string) string { return pgx.Identifier{c.name(what)}.Sanitize() }

// name returns a unique name among the tables of a schema, even if the table's name has
// the maximum length.
func (c Config) name(what string) string {
	const longest = 63
	table := c.Table[len(c.Table)-1]
	if name := table + "_assign_" + what; len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(table))
	return "assign_" + hex.EncodeToString(sum[:16]) + "_" + what
}

// literal quotes a string constant; the E makes it independent of
// standard_conforming_strings.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}
