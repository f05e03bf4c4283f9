package dialects

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/lease"
)

// damageCell is one way in which a database differs from what Migrate makes.
type damageCell struct {
	name       string
	statements []string
}

// cells reads the ways to damage a database from its catalogs, so that a new table or column
// is in them.
//
// Set by hand: the damages are what other programs and operators write.
func (s *damageSite) cells(t *testing.T) (all []damageCell) {
	t.Helper()
	var db *sql.DB
	if s.kind.dialect == lease.MySQL {
		db = s.kind.connect(t, s.server.DSN(s.copied))
	} else {
		db = s.kind.connect(t, "file:"+s.copied)
	}
	defer db.Close()
	for _, name := range leaseTables {
		all = append(all, cellsOfTable(name)...)
		if s.kind.dialect == lease.MySQL {
			all = append(all, mariaCells(t, db, name)...)
		} else {
			all = append(all, sqliteCells(t, db, name)...)
		}
	}
	var emptied, dropped []string
	for _, name := range leaseTables {
		emptied = append(emptied, "DELETE FROM "+name)
		dropped = append(dropped, "DROP TABLE "+name)
	}
	return append(all,
		damageCell{"all rows gone", emptied}, damageCell{"all dropped", dropped},
		damageCell{"nodes without rows", []string{emptied[1], emptied[4]}},
		damageCell{"only tenure_lease_seats", append(dropped[:3:3], dropped[4])}, damageCell{"only tenure_lease_news", append([]string{dropped[0]}, dropped[2:]...)})
}

// cellsOfTable are those that are alike on all databases.
func cellsOfTable(name string) []damageCell {
	return []damageCell{
		{name + " emptied", []string{"DELETE FROM " + name}},
		{name + " dropped", []string{"DROP TABLE " + name}},
		{name + " renamed", []string{"ALTER TABLE " + name + " RENAME TO elsewhere"}},
		{name + " with a column", []string{"ALTER TABLE " + name + " ADD COLUMN extra varchar(9)"}},
		{name + " with an index", []string{"CREATE INDEX extra ON " + name + " (" + firstColumn[name] + ")"}},
		{name + " with a unique index", []string{"CREATE UNIQUE INDEX extra ON " + name + " (" + someColumn[name] + ")"}},
	}
}

// firstColumn and someColumn are columns of each table.
var (
	firstColumn = map[string]string{
		"tenure_lease_history": "role", "tenure_lease_news": "id", "tenure_lease_requests": "id", "tenure_lease_seats": "role", "tenure_lease_sessions": "incarnation",
	}
	someColumn = map[string]string{
		"tenure_lease_history": "node_id", "tenure_lease_news": "server_since", "tenure_lease_requests": "kind", "tenure_lease_seats": "holder", "tenure_lease_sessions": "node_id",
	}
)

// read returns the rows of a query with six columns of text.
func read(t *testing.T, db *sql.DB, query string, args ...any) (all [][6]sql.NullString) {
	t.Helper()
	rows, err := db.QueryContext(soon(t), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r [6]sql.NullString
		if err := rows.Scan(&r[0], &r[1], &r[2], &r[3], &r[4], &r[5]); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func mariaCells(t *testing.T, db *sql.DB, name string) (all []damageCell) {
	add := func(what string, statements ...string) {
		all = append(all, damageCell{name + what, statements})
	}
	alter := "ALTER TABLE " + name + " "
	add(" on MyISAM", alter+"ENGINE = MyISAM")
	add(" on Aria", alter+"ENGINE = Aria")
	add(" with another default charset", alter+"DEFAULT CHARACTER SET latin1")
	add(" with a required column", alter+"ADD COLUMN extra varchar(9) NOT NULL")
	add(" with a check", alter+"ADD CONSTRAINT extra CHECK ("+someColumn[name]+" IS NULL OR "+someColumn[name]+" <> '7')")
	add(" with a trigger", "CREATE TRIGGER "+name+"_extra BEFORE UPDATE ON "+name+" FOR EACH ROW SET NEW."+someColumn[name]+" = OLD."+someColumn[name])
	for _, r := range read(t, db, `SELECT column_name, column_type, is_nullable, column_default, extra, character_set_name
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? ORDER BY 1`, name) {
		column, kind, auto := r[0].String, r[1].String, r[4].String == "auto_increment"
		if r[5].Valid {
			kind += " CHARACTER SET " + r[5].String
			if r[5].String == "utf8mb4" {
				kind += " COLLATE utf8mb4_bin"
			}
		}
		null := " NOT NULL"
		if r[2].String == "YES" {
			null = " NULL"
		}
		modify := alter + "MODIFY " + column + " "
		drop := []string{alter + "DROP COLUMN " + column}
		for _, index := range read(t, db, `SELECT DISTINCT index_name, NULL, NULL, NULL, NULL, NULL FROM information_schema.statistics
			WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?`, name, column) {
			if !auto {
				drop = slices.Insert(drop, 0, alter+"DROP INDEX `"+index[0].String+"`") // of several columns
			}
		}
		add("."+column+" dropped", drop...)
		keyed := value(t, db, "SELECT count(*) FROM information_schema.statistics WHERE table_schema = DATABASE() AND index_name = 'PRIMARY' AND table_name = '"+name+"' AND column_name = '"+column+"'") != "0"
		switch {
		case keyed:
		case null == " NULL":
			add("."+column+" not nullable", "DELETE FROM "+name+" WHERE "+column+" IS NULL", modify+kind+" NOT NULL")
		default:
			add("."+column+" nullable", modify+kind+" NULL")
		}
		if r[3].Valid && r[3].String != "NULL" {
			add("."+column+" without default", alter+"ALTER COLUMN "+column+" DROP DEFAULT")
		}
		if auto {
			add("."+column+" without counter", modify+kind+null)
		}
		if r[5].Valid && r[5].String == "utf8mb4" && strings.Contains(kind, "1024") {
			add("."+column+" of another charset", modify+r[1].String+" CHARACTER SET latin1"+null)
			add("."+column+" of another collation", modify+r[1].String+" CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"+null)
		}
		other := map[bool]string{true: "decimal(30, 0)", false: "varchar(300) CHARACTER SET utf8mb4"}[strings.Contains(kind, "int")]
		if !auto {
			add("."+column+" of another type", modify+other+null)
		}
		add("."+column+" renamed", alter+"RENAME COLUMN "+column+" TO elsewhere")
	}
	for _, r := range read(t, db, `SELECT index_name, group_concat(column_name ORDER BY seq_in_index SEPARATOR ', '), NULL, NULL, NULL, NULL
		FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? GROUP BY 1`, name) {
		if r[0].String == "PRIMARY" {
			drop := alter + "DROP PRIMARY KEY"
			if name == "tenure_lease_requests" {
				drop = alter + "MODIFY id bigint NOT NULL, DROP PRIMARY KEY"
			}
			add(" without PRIMARY KEY ("+r[1].String+")", drop)
			continue
		}
		add(" without UNIQUE ("+r[1].String+")", alter+"DROP INDEX "+r[0].String)
		add(" with an index instead of UNIQUE ("+r[1].String+")", alter+"DROP INDEX "+r[0].String, alter+"ADD INDEX "+r[0].String+" ("+r[1].String+")")
	}
	return all
}

// sqliteCells edit the definition of a table, and copy its rows.
func sqliteCells(t *testing.T, db *sql.DB, name string) (all []damageCell) {
	definition := regexp.MustCompile(`--.*`).ReplaceAllString(value(t, db, "SELECT sql FROM sqlite_master WHERE name = '"+name+"'"), "")
	columns := read(t, db, `SELECT name, type, "notnull", dflt_value, pk, NULL FROM pragma_table_info(?) ORDER BY 1`, name)
	// edit adds a cell with another definition. A copy can lack a column.
	edit := func(what, definition, without string) {
		var copied []string
		for _, c := range columns {
			if c[0].String != without {
				copied = append(copied, c[0].String)
			}
		}
		list := strings.Join(copied, ", ")
		all = append(all, damageCell{name + what, []string{
			"ALTER TABLE " + name + " RENAME TO before", strings.Replace(definition, "IF NOT EXISTS ", "", 1),
			"INSERT OR IGNORE INTO " + name + " (" + list + ") SELECT " + list + " FROM before", "DROP TABLE before",
		}})
	}
	all = append(all,
		damageCell{name + " with a trigger", []string{"CREATE TRIGGER extra BEFORE UPDATE ON " + name + " BEGIN SELECT RAISE(IGNORE); END"}},
	)
	line := func(column string) *regexp.Regexp { return regexp.MustCompile(`(?m)^( +` + column + ` )(.*?)(,?)\s*$`) }
	for _, c := range columns {
		column := c[0].String
		of := line(column)
		kind := strings.TrimRight(strings.Fields(of.FindString(definition))[1], ",")
		change := func(from, to string) string {
			return of.ReplaceAllStringFunc(definition, func(line string) string { return strings.Replace(line, from, to, 1) })
		}
		without := of.ReplaceAllString(definition, "")
		without = regexp.MustCompile(`(?m)^ +(UNIQUE|PRIMARY KEY) \((.*\b)?`+column+`(\b.*)?\),?$`).ReplaceAllString(without, "")
		without = regexp.MustCompile(`,(\s*\))$`).ReplaceAllString(strings.TrimSpace(without), "$1")
		edit("."+column+" dropped", without, column)
		all = append(all, damageCell{name + "." + column + " renamed", []string{"ALTER TABLE " + name + " RENAME COLUMN " + column + " TO elsewhere"}})
		if c[2].String == "1" {
			edit("."+column+" nullable", change(" NOT NULL", ""), "")
		} else if c[4].String == "0" {
			edit("."+column+" not nullable", change(" "+kind, " "+kind+" NOT NULL"), "")
		}
		if c[3].Valid {
			edit("."+column+" without default", change(" DEFAULT "+c[3].String, ""), "")
		}
		other := "text"
		if kind == "text" || strings.HasPrefix(kind, "varchar") {
			other = "blob"
		}
		if !strings.Contains(of.FindString(definition), "AUTOINCREMENT") {
			edit("."+column+" of another type", change(" "+kind, " "+other), "")
		} else {
			edit("."+column+" without counter", change(" AUTOINCREMENT", ""), "")
		}
		edit("."+column+" compared without case", of.ReplaceAllString(definition, "$1$2 COLLATE NOCASE$3"), "")
		edit("."+column+" with a check", of.ReplaceAllString(definition, "$1$2 CHECK ("+column+" IS NULL OR "+column+" <> 7)$3"), "")
	}
	edit(" with a required column", strings.Replace(definition, "(\n", "(\n    extra text NOT NULL,\n", 1), "")
	for _, key := range regexp.MustCompile(`(?m)^ +((UNIQUE|PRIMARY KEY) \(.*\)),?$`).FindAllStringSubmatch(definition, -1) {
		without := strings.Replace(definition, strings.TrimRight(key[0], ","), "", 1)
		without = regexp.MustCompile(`,\s*,`).ReplaceAllString(without, ",")
		without = regexp.MustCompile(`,(\s*\))$`).ReplaceAllString(strings.TrimSpace(without), "$1")
		edit(" without "+key[1], without, "")
	}
	for _, c := range columns {
		if strings.Contains(line(c[0].String).FindString(definition), " PRIMARY KEY") {
			edit(fmt.Sprintf(" without PRIMARY KEY (%s)", c[0].String), strings.NewReplacer(" PRIMARY KEY", "", " AUTOINCREMENT", "").Replace(definition), "")
		}
	}
	return all
}
