package lease

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// column is how a column of a table looks.
type column struct {
	kind               string // the type
	charset, collation string // empty if they do not matter
	required           bool   // NOT NULL
	value              string // the default; empty if there is none
	extra              string // such as AUTO_INCREMENT
}

func (c column) String() string {
	text := c.kind
	for _, part := range [][2]string{{" CHARACTER SET ", c.charset}, {" COLLATE ", c.collation}, {" DEFAULT ", c.value}, {" ", c.extra}} {
		if part[1] != "" {
			text += part[0] + part[1]
		}
	}
	if c.required {
		text += " NOT NULL"
	}
	return text
}

// table is how a table looks.
type table struct {
	name    string // without quotes
	create  string // the statement; empty for a table that was found
	order   []string
	columns map[string]column
	keys    map[string]bool // such as UNIQUE (role, term)
	others  []string        // what changes the effect of statements, such as a trigger
}

func newTable(name string) *table {
	return &table{name: name, columns: map[string]column{}, keys: map[string]bool{}}
}

var (
	comment     = regexp.MustCompile(`--.*`)
	columnForm  = regexp.MustCompile(`^(\w+) (.*?)( CHARACTER SET \w+)?( COLLATE \w+)?( NOT NULL)?( DEFAULT \S+)?( AUTO_INCREMENT| PRIMARY KEY AUTOINCREMENT)?( PRIMARY KEY)?$`)
	lengthOfInt = regexp.MustCompile(`^(\w*int)\(\d+\)`)
)

// wantedTable reads a CREATE TABLE statement in the format of queries.go.
func wantedTable(name, create string) *table {
	t := newTable(name)
	t.create = create
	lines := strings.Split(comment.ReplaceAllString(create, ""), "\n")
	for _, line := range lines[1 : len(lines)-1] {
		line = strings.TrimRight(strings.TrimSpace(line), ",")
		if strings.HasPrefix(line, "UNIQUE (") || strings.HasPrefix(line, "PRIMARY KEY (") {
			t.keys[line] = true
			continue
		}
		found := columnForm.FindStringSubmatch(line)
		if found == nil {
			panic(fmt.Sprintf("the column %q has another form", line))
		}
		after := func(i int, word string) string { return strings.TrimPrefix(found[i], word) }
		c := column{
			kind: strings.ToLower(found[2]), charset: after(3, " CHARACTER SET "), collation: after(4, " COLLATE "),
			required: found[5] != "", value: after(6, " DEFAULT "),
		}
		c.kind = strings.Replace(c.kind, "double precision", "double", 1)
		if key := found[7] + found[8]; strings.Contains(key, "PRIMARY KEY") {
			t.keys["PRIMARY KEY ("+found[1]+")"] = true
		}
		if found[7] != "" {
			c.extra = strings.TrimPrefix(strings.TrimSpace(found[7]), "PRIMARY KEY ")
			c.required = c.extra == "AUTO_INCREMENT" // a key of MySQL is NOT NULL
		}
		t.columns[found[1]] = c
		t.order = append(t.order, found[1])
	}
	return t
}

// wantedTables returns how the tables must look.
func (b *Backend) wantedTables() (wanted []*table) {
	for i, name := range tableNames {
		wanted = append(wanted, wantedTable(b.config.Prefix+name, b.tables()[i]))
	}
	return wanted
}

// partsQueries list the parts of tables: their kind, the table and the name. For columns
// follow the type, NOT NULL, the default, extras, the character set and the collation. %s
// is replaced by a list of parameters. Rows of one index follow one another.
var partsQueries = map[sqldb.Dialect]string{
	sqldb.SQLite: `
WITH tables AS (SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name IN %s)
SELECT 'column', t.name, c.name, c.type, c."notnull", c.dflt_value,
    CASE WHEN c.pk > 0 AND t.sql LIKE '%% AUTOINCREMENT%%' THEN 'AUTOINCREMENT' END, NULL, NULL, c.cid
FROM tables t, pragma_table_info(t.name) c
UNION ALL
SELECT 'PRIMARY KEY', t.name, c.name, '', 0, NULL, NULL, NULL, NULL, c.pk
FROM tables t, pragma_table_info(t.name) c
WHERE c.pk > 0
UNION ALL
SELECT 'UNIQUE', t.name, coalesce(c.name, 'an expression'), i.name, 0, NULL, CASE WHEN i.partial THEN ' WHERE' END, NULL, NULL, c.seqno
FROM tables t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
WHERE i."unique" AND i.origin <> 'pk'
UNION ALL
SELECT 'trigger', r.tbl_name, r.name, '', 0, NULL, NULL, NULL, NULL, 0
FROM tables t JOIN sqlite_master r ON r.type = 'trigger' AND r.tbl_name = t.name
UNION ALL
SELECT 'definition', t.name, t.sql, '', 0, NULL, NULL, NULL, NULL, 0
FROM tables t
ORDER BY 1, 2, 4, 10`,
	sqldb.MySQL: `
SELECT 'column', table_name, column_name, column_type, is_nullable = 'NO', column_default, extra, character_set_name, collation_name, ordinal_position
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name IN %s
UNION ALL
SELECT CASE index_name WHEN 'PRIMARY' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, table_name,
    column_name, index_name, 0, NULL, CASE WHEN sub_part IS NOT NULL THEN ' prefix' END, NULL, NULL, seq_in_index
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND non_unique = 0 AND table_name IN %s
UNION ALL
SELECT 'trigger', event_object_table, trigger_name, '', 0, NULL, NULL, NULL, NULL, 0
FROM information_schema.triggers
WHERE event_object_schema = DATABASE() AND event_object_table IN %s
UNION ALL
SELECT 'constraint', table_name, constraint_name, '', 0, NULL, NULL, NULL, NULL, 0
FROM information_schema.table_constraints
WHERE table_schema = DATABASE() AND constraint_type IN ('CHECK', 'FOREIGN KEY') AND table_name IN %s
ORDER BY 1, 2, 4, 10`,
}

// foreignWords are words of a table's definition on SQLite with an effect on statements.
var foreignWords = regexp.MustCompile(`(?i)\b(CHECK|COLLATE|REFERENCES|CONFLICT|STRICT|GENERATED)\b|\bAS \(`)

// partRow is a row of a query for parts.
type partRow struct {
	kind, table, name, detail               string
	required                                bool
	value, extra, charset, collation, index sql.NullString
}

// readTables returns the existing tables, by their names. On PostgreSQL it returns none.
func (b *Backend) readTables(ctx context.Context, on sqldb.Querier) (map[string]*table, error) {
	query := partsQueries[b.db.Dialect]
	list := "(?" + strings.Repeat(", ?", len(tableNames)-1) + ")"
	var names []any
	for range strings.Count(query, "IN %s") {
		for _, name := range tableNames {
			names = append(names, b.config.Prefix+name)
		}
	}
	query = strings.ReplaceAll(strings.ReplaceAll(query, "IN %s", "IN "+list), "%%", "%")
	found := map[string]*table{}
	if query == "" {
		return found, nil
	}
	keys := map[[2]string]string{} // by table and index
	err := sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
		var r partRow
		if err := rows.Scan(&r.kind, &r.table, &r.name, &r.detail, &r.required, &r.value, &r.extra, &r.charset, &r.collation, &r.index); err != nil {
			return err
		}
		t := found[r.table]
		if t == nil {
			t = newTable(r.table)
			found[r.table] = t
		}
		switch r.kind {
		case "column":
			t.columns[r.name] = r.column()
		case "PRIMARY KEY", "UNIQUE":
			index := [2]string{r.table, r.kind + r.detail}
			if keys[index] == "" {
				keys[index] = r.kind + " ("
			} else {
				keys[index] += ", "
			}
			keys[index] += r.name + r.extra.String
		case "definition":
			for _, word := range foreignWords.FindAllString(comment.ReplaceAllString(r.name, ""), -1) {
				t.others = append(t.others, "a definition with "+word)
			}
		default:
			t.others = append(t.others, "the "+r.kind+" "+r.name)
		}
		return nil
	}, names...)
	for index, key := range keys {
		found[index[0]].keys[key+")"] = true
	}
	return found, err
}

// column returns the column in a row.
func (r partRow) column() column {
	c := column{
		kind: lengthOfInt.ReplaceAllString(strings.ToLower(r.detail), "$1"), required: r.required, value: r.value.String,
		extra: strings.ToUpper(r.extra.String), charset: r.charset.String, collation: r.collation.String,
	}
	c.kind = strings.Replace(c.kind, "double precision", "double", 1)
	if c.value == "NULL" { // of MariaDB, for no default
		c.value = ""
	}
	return c
}

// like returns the column without the attributes irrelevant to the wanted one.
func (c column) like(wanted column) column {
	if wanted.charset == "" {
		c.charset = ""
	}
	if wanted.collation == "" {
		c.collation = ""
	}
	return c
}

// differences lists how a table differs from the wanted one. Additional optional columns
// and additional indexes that refuse no row are allowed.
func (t *table) differences(found *table) (all []string) {
	for _, name := range t.order {
		want := t.columns[name]
		switch have, ok := found.columns[name]; {
		case !ok:
			all = append(all, fmt.Sprintf("column %s.%s is missing", t.name, name))
		case have.like(want) != want:
			all = append(all, fmt.Sprintf("column %s.%s is %q and must be %q", t.name, name, have.like(want), want))
		}
	}
	for name, c := range found.columns {
		if _, known := t.columns[name]; !known && c.required && c.value == "" {
			all = append(all, fmt.Sprintf("column %s.%s is not Tenure's and must have a value in each row", t.name, name))
		}
	}
	for key := range t.keys {
		if !found.keys[key] {
			all = append(all, fmt.Sprintf("%s of %s is missing", key, t.name))
		}
	}
	for key := range found.keys {
		if !t.keys[key] {
			all = append(all, fmt.Sprintf("%s of %s is not Tenure's", key, t.name))
		}
	}
	for _, other := range found.others {
		all = append(all, fmt.Sprintf("%s has %s", t.name, other))
	}
	slices.Sort(all)
	return all
}

// belongs reports whether a table is Tenure's: it has at least half of the columns.
func (t *table) belongs(found *table) bool {
	shared := 0
	for name := range t.columns {
		if _, ok := found.columns[name]; ok {
			shared++
		}
	}
	return 2*shared >= len(t.columns)
}

// repairCommand repairs everything named by a damage error.
const repairCommand = "tenure migrate repair"

// maxNamed is how many damages an error names.
const maxNamed = 3

// damage returns an error with the list of differences between the tables and the result
// of Migrate. With missing, a missing table is a difference too.
func (b *Backend) damage(ctx context.Context, missing bool) error {
	if partsQueries[b.db.Dialect] == "" {
		return nil
	}
	var all []string
	err := b.db.Read(ctx, "compare the tables", func(ctx context.Context, on sqldb.Querier) error {
		all = nil
		found, err := b.readTables(ctx, on)
		if err != nil {
			return err
		}
		for _, want := range b.wantedTables() {
			have := found[want.name]
			switch {
			case have == nil && missing:
				all = append(all, fmt.Sprintf("table %s is missing", want.name))
			case have == nil:
			case !want.belongs(have):
				return foreignTable(want.name)
			default:
				all = append(all, want.differences(have)...)
			}
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return err
	}
	if len(all) > maxNamed {
		all = append(all[:maxNamed], fmt.Sprintf("%d more", len(all)-maxNamed))
	}
	return fmt.Errorf("%w: %s: end all nodes and run %s", dberr.ErrDamaged, strings.Join(all, "; "), repairCommand)
}

func foreignTable(name string) error {
	return fmt.Errorf("%w: another program owns the table %s: choose another prefix", dberr.ErrSchema, name)
}
