package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mend returns the statements to mend a damage, in order. They may remove a view or a
// trigger; the next check of the parts then finds it missing. It returns none if only an
// operator can mend it.
func (n Names) Mend(d Damage) []string {
	var templates []string
	table := "{" + d.relation() + "}"
	switch d.Kind {
	case KindRowSecurity:
		templates = []string{"ALTER TABLE " + table + " NO FORCE ROW LEVEL SECURITY", "ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY"}
	case KindRule:
		templates = []string{"DROP RULE " + d.Found + " ON " + table}
	case KindChild:
		templates = []string{"ALTER TABLE " + d.Found + " NO INHERIT " + table}
	case KindSequence:
		templates = mendSequence(d)
	case KindTable:
		templates = mendTable(d, table)
	case KindColumn:
		templates = mendColumn(d, table)
	case KindCheck:
		templates = mendCheck(d, table)
	case KindIndex:
		templates = mendIndex(d, table)
	case KindFunction:
		templates = mendFunction(d)
	case KindDefiner:
		templates = []string{
			"GRANT USAGE ON SCHEMA {schema} TO " + d.Found, "GRANT SELECT ON TABLE {nodes} TO " + d.Found, "GRANT INSERT ON TABLE {node_history} TO " + d.Found,
		}
	case KindView:
		create := d.Feature.create(d.Object)
		if d.Found != "" {
			create = strings.Replace(create, "CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
		}
		templates = []string{create}
	case KindTrigger:
		templates = mendTrigger(d, table)
	}
	all := make([]string, len(templates))
	for i, template := range templates {
		all[i] = strings.TrimSuffix(n.SQL(template), ";") + ";"
	}
	return all
}

func mendCheck(d Damage, table string) []string {
	if d.Extra {
		return []string{fmt.Sprintf(dropChecks, Literal(d.Shape), d.relation(), d.relation())}
	}
	return []string{"ALTER TABLE " + table + " ADD " + d.Shape}
}

// dropChecks removes the constraints with a definition from a table.
const dropChecks = `DO $tenure$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT conname FROM pg_constraint WHERE contype = 'c' AND pg_get_constraintdef(oid) = %s AND conrelid = {%s:regclass}
    LOOP
        EXECUTE format('ALTER TABLE %%s DROP CONSTRAINT %%I', {%s:regclass}, name);
    END LOOP;
END
$tenure$`

func mendSequence(d Damage) []string {
	if d.Found == "" {
		templates := []string{d.Feature.create(d.Object)}
		for _, statement := range d.Feature.statements() {
			if strings.HasPrefix(statement, "SELECT setval({"+d.Object+":regclass}") {
				templates = append(templates, statement)
			}
		}
		return templates
	}
	var persistence, kind string
	var by, from, to int64
	if _, err := fmt.Sscanf(d.Shape, "%s %s by %d from %d to %d", &persistence, &kind, &by, &from, &to); err != nil {
		return nil
	}
	sequence := "ALTER SEQUENCE {" + d.Object + "}"
	var templates []string
	if !strings.HasPrefix(d.Found, persistence) {
		templates = append(templates, sequence+" SET LOGGED")
	}
	return append(templates, fmt.Sprintf("%s AS %s INCREMENT %d MINVALUE %d MAXVALUE %d NO CYCLE", sequence, kind, by, from, to))
}

var namedConstraint = regexp.MustCompile(`CONSTRAINT "([^"]+)"`)

func mendTable(d Damage, table string) []string {
	switch wanted, found := d.Shape, d.Found; {
	case found == "":
		create := d.Feature.create(d.Object)
		var templates []string
		for _, m := range namedConstraint.FindAllStringSubmatch(create, -1) { // a renamed table keeps the names
			templates = append(templates, `ALTER INDEX IF EXISTS {schema}."`+m[1]+`" RENAME TO "`+m[1]+`_before"`)
		}
		return append(templates, create)
	case found == "unlogged table":
		return []string{"ALTER TABLE " + table + " SET LOGGED"}
	case found == "permanent table" && wanted == "unlogged table":
		return []string{"ALTER TABLE " + table + " SET UNLOGGED"}
	case found == wanted+" without replica identity": // the server refuses changes of a table with a publication
		return []string{"ALTER TABLE " + table + " REPLICA IDENTITY DEFAULT"}
	case strings.HasPrefix(found, wanted+" with the access method"):
		return []string{"ALTER TABLE " + table + " SET ACCESS METHOD heap"}
	}
	return nil
}

// column is a column of a table in parts.
type column struct {
	typed, identity, standard string // standard is its default
	notNull                   bool
}

var columnShape = regexp.MustCompile(`^(.*?)( NOT NULL)?(?: (GENERATED (?:ALWAYS|BY DEFAULT) AS IDENTITY))?(?: DEFAULT (.*))?$`)

func parseColumn(shape string) column {
	m := columnShape.FindStringSubmatch(shape)
	return column{typed: m[1], notNull: m[2] != "", identity: m[3], standard: m[4]}
}

// fillers are values for rows without one: after losing a column, a row keeps the others.
var fillers = map[string]string{
	"text": "''", "integer": "0", "bigint": "0", "smallint": "0", "double precision": "0", "boolean": "false", "uuid": "gen_random_uuid()",
	"timestamp with time zone": "clock_timestamp()", "date": "current_date", "jsonb": "'{}'", "bytea": "''", "xid8": "'0'", "text[]": "'{}'",
}

// fillersOf are the fillers of columns with a restricted set of values. A repair computes
// the lock keys.
var fillersOf = map[string]string{
	"terms.lock_key": "role", "installation.mode": "'sessions'", "runs.state": "'abandoned'", "alert_states.state": "'pending'",
}

func mendColumn(d Damage, table string) []string {
	name := d.Object[len(d.relation())+1:]
	quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	alter := "ALTER TABLE " + table + " ALTER COLUMN " + quoted
	if d.Extra {
		return []string{alter + " DROP NOT NULL"}
	}
	if create := d.Feature.create(d.relation()); strings.HasPrefix(create, "CREATE VIEW") {
		return []string{"DROP VIEW IF EXISTS " + table, create}
	}
	wanted := parseColumn(d.Shape)
	key := d.isKey(name)
	filler := fillers[wanted.typed]
	if wanted.standard != "" {
		filler = wanted.standard
	}
	if own, found := fillersOf[d.Object]; found && wanted.standard == "" {
		filler, key = own, false
	}
	if d.Found == "" {
		return addColumn(table, quoted, wanted, filler, key)
	}
	return d.changeColumn(table, quoted, wanted, parseColumn(d.Found), filler, key)
}

// changeColumn makes a column look as it must.
func (d Damage) changeColumn(table, quoted string, wanted, found column, filler string, key bool) []string {
	alter := "ALTER TABLE " + table + " ALTER COLUMN " + quoted
	var templates []string
	if found.typed != wanted.typed {
		templates = append(templates, d.dependents(table)...)
		if found.identity != "" {
			templates = append(templates, alter+" DROP IDENTITY IF EXISTS")
			found.identity = ""
		}
		templates = append(templates, alter+" DROP DEFAULT", fmt.Sprintf("%s TYPE %s USING %s::text::%s", alter, wanted.typed, quoted, wanted.typed))
		found.standard = ""
	}
	if wanted.notNull && !found.notNull {
		if key {
			templates = append(templates, fmt.Sprintf("DELETE FROM %s WHERE %s IS NULL", table, quoted))
		} else {
			templates = append(templates, fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s IS NULL", table, quoted, filler, quoted))
		}
		templates = append(templates, alter+" SET NOT NULL")
	}
	if !wanted.notNull && found.notNull {
		templates = append(templates, alter+" DROP NOT NULL")
	}
	switch {
	case wanted.identity == found.identity:
	case wanted.identity == "":
		templates = append(templates, alter+" DROP IDENTITY IF EXISTS")
	case found.identity == "":
		templates = append(templates, alter+" DROP DEFAULT", alter+" ADD "+wanted.identity)
	default:
		templates = append(templates, alter+" SET "+strings.TrimSuffix(wanted.identity, " AS IDENTITY"))
	}
	switch {
	case wanted.standard == found.standard || wanted.identity != "":
	case wanted.standard == "":
		templates = append(templates, alter+" DROP DEFAULT")
	default:
		templates = append(templates, alter+" SET DEFAULT "+wanted.standard)
	}
	return templates
}

// addColumn adds a missing column. Without a key column, rows say nothing.
func addColumn(table, quoted string, wanted column, filler string, key bool) []string {
	add := fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", table, quoted, wanted.typed)
	switch {
	case wanted.identity != "":
		return []string{add + " NOT NULL " + wanted.identity}
	case !wanted.notNull:
		if wanted.standard != "" {
			add += " DEFAULT " + wanted.standard
		}
		return []string{add}
	case wanted.standard != "":
		return []string{add + " NOT NULL DEFAULT " + wanted.standard}
	case key:
		return []string{"TRUNCATE " + table, add + " NOT NULL"}
	}
	return []string{
		add,
		fmt.Sprintf("UPDATE %s SET %s = %s", table, quoted, filler),
		fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL", table, quoted),
	}
}

// isKey reports whether a column belongs to a unique index.
func (d Damage) isKey(name string) bool {
	return slices.ContainsFunc(d.Feature.Parts, func(p Part) bool {
		columns, found := strings.CutPrefix(p.Object, d.relation()+" (")
		return found && p.Kind == KindIndex && strings.HasPrefix(p.Shape, "unique") &&
			slices.Contains(strings.Split(strings.ReplaceAll(strings.TrimSuffix(columns, ")"), `"`, ""), ", "), name)
	})
}

// dependents removes the objects in the way of a column's change: triggers of the table,
// and views.
func (d Damage) dependents(table string) []string {
	var templates []string
	for _, p := range d.Feature.Parts {
		name, found := strings.CutPrefix(p.Object, d.relation()+".")
		switch {
		case p.Kind == KindTrigger && found:
			templates = append(templates, `DROP TRIGGER IF EXISTS "{prefix}`+name+`" ON `+table)
		case p.Kind == KindView:
			templates = append(templates, "DROP VIEW IF EXISTS {"+p.Object+"}")
		}
	}
	return templates
}

// mendIndex makes an index as the migrations do, as a constraint where it is one.
func mendIndex(d Damage, table string) []string {
	_, columns, _ := strings.Cut(d.Object, " (")
	columns = strings.ReplaceAll("("+columns, `"`, "") // the server quotes more words than the migrations
	if _, name, found := strings.Cut(d.Found, " invalid as "); found {
		return []string{"REINDEX INDEX " + name}
	}
	begin := "CREATE INDEX "
	if strings.HasPrefix(d.Shape, "unique") {
		begin = "CREATE UNIQUE INDEX "
	}
	for _, statement := range d.Feature.statements() {
		rest, found := strings.CutPrefix(statement, begin)
		if found && strings.Contains(statement, "ON "+table) && squeeze(columnsOf(statement, table)) == squeeze(columns) &&
			strings.Contains(statement, " WHERE ") == strings.Contains(d.Shape, " where ") {
			return []string{"DROP INDEX IF EXISTS {schema}." + strings.Fields(rest)[0], statement}
		}
	}
	var drop []string
	if _, name, found := strings.Cut(d.Found, " deferrable as "); found {
		drop = []string{"ALTER TABLE " + table + " DROP CONSTRAINT " + name}
	}
	create := d.Feature.create(d.relation())
	for line := range strings.Lines(create) {
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		first := "(" + strings.Split(line, " ")[0] + ")"
		switch {
		case strings.HasPrefix(line, "CONSTRAINT ") && strings.HasSuffix(line, "UNIQUE "+columns), line == "UNIQUE "+columns, line == "PRIMARY KEY "+columns:
			return append(drop, "ALTER TABLE "+table+" ADD "+line)
		case first == columns && strings.Contains(line, " PRIMARY KEY"):
			return append(drop, "ALTER TABLE "+table+" ADD PRIMARY KEY "+columns)
		}
	}
	return nil
}

// columnsOf returns the columns of a CREATE INDEX statement in their parentheses.
func columnsOf(statement, table string) string {
	_, rest, _ := strings.Cut(statement, "ON "+table)
	rest = rest[max(0, strings.Index(rest, "(")):]
	depth := 0
	for i, c := range rest {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return rest[:i+1]
			}
		}
	}
	return rest
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

func mendFunction(d Damage) []string {
	create := d.Feature.create(name(d.Object))
	if d.Found == "" {
		return []string{create}
	}
	before := func(shape string) string { result, _, _ := strings.Cut(shape, " language "); return result }
	if before(d.Found) != before(d.Shape) {
		arguments := d.Object[len(name(d.Object)):]
		return []string{"DROP FUNCTION {" + name(d.Object) + "}" + arguments + " CASCADE", create}
	}
	return []string{strings.Replace(create, "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)}
}

func name(function string) string {
	before, _, _ := strings.Cut(function, "(")
	return before
}

func mendTrigger(d Damage, table string) []string {
	name := strings.ReplaceAll(d.Object[len(d.relation())+1:], `"`, `""`)
	quoted := `"{prefix}` + name + `"`
	if d.Extra { // its object lacks the prefix, if its name had it
		return []string{`DROP TRIGGER IF EXISTS "` + name + `" ON ` + table, "DROP TRIGGER IF EXISTS " + quoted + " ON " + table}
	}
	if d.Found == d.Shape+" disabled" || d.Found == d.Shape+" on replicas only" {
		return []string{"ALTER TABLE " + table + " ENABLE TRIGGER " + quoted}
	}
	for _, statement := range d.Feature.statements() {
		if strings.HasPrefix(statement, "CREATE TRIGGER "+quoted) {
			return []string{"DROP TRIGGER IF EXISTS " + quoted + " ON " + table, statement}
		}
	}
	return nil
}
