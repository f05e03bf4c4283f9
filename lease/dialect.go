package lease

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exactly-one/tenure"
)

// Dialect is the SQL that a database speaks.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1 // 14 or later, also behind a pooler in transaction mode
	SQLite                        // 3.24 or later, one file for the processes of one machine
	MySQL                         // MySQL 8.0.1 or later, MariaDB 10.6 or later
)

// String returns the name of the dialect.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	case MySQL:
		return "MySQL"
	default:
		return fmt.Sprintf("Dialect(%d)", uint8(d))
	}
}

func (d Dialect) validate() error {
	if d < PostgreSQL || d > MySQL {
		return fmt.Errorf("%w: there is no SQL dialect %d", tenure.ErrInvalidConfig, uint8(d))
	}
	return nil
}

// words are what the dialects say differently, by the placeholder that stands
// for it in a statement. Times are integers, microseconds since 1970 in UTC, so
// that every dialect compares them alike; {now} is always the database's clock,
// and {clock number} the same in milliseconds: the least number of a new term.
var words = map[Dialect]*strings.Replacer{
	PostgreSQL: strings.NewReplacer(
		"{now}", "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
		"{clock number}", "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)",
		"{greatest}", "GREATEST",
		"{for update}", "FOR UPDATE",
		"{skip locked}", "FOR UPDATE SKIP LOCKED",
		"{share}", "FOR KEY SHARE",
		"{insert new}", "INSERT INTO",
		"{unless there}", "ON CONFLICT DO NOTHING",
		"{name}", "text", // compared byte by byte, below
		"{text}", "text",
		"{counter}", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"{table options}", "",
	),
	SQLite: strings.NewReplacer(
		// The one form that old versions know too; its precision is a millisecond.
		"{now}", "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000",
		"{clock number}", "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
		"{greatest}", "max",
		"{for update}", "",
		"{skip locked}", "",
		"{share}", "",
		"{insert new}", "INSERT INTO",
		"{unless there}", "ON CONFLICT DO NOTHING",
		"{name}", "text",
		"{text}", "text",
		"{counter}", "INTEGER PRIMARY KEY AUTOINCREMENT",
		"{table options}", "",
	),
	MySQL: strings.NewReplacer(
		"{now}", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
		"{clock number}", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000",
		"{greatest}", "GREATEST",
		"{for update}", "FOR UPDATE",
		"{skip locked}", "FOR UPDATE SKIP LOCKED",
		"{share}", "LOCK IN SHARE MODE",
		"{insert new}", "INSERT IGNORE INTO",
		"{unless there}", "",
		// Bytes: every collation that all versions have takes some different
		// names for equal, if only by the spaces at their ends.
		"{name}", "varbinary(255)",
		"{text}", "varchar(1024) CHARACTER SET utf8mb4",
		"{counter}", "bigint AUTO_INCREMENT PRIMARY KEY",
		"{table options}", " ENGINE = InnoDB",
	),
}

// render puts the words of a dialect into a statement, and its parameters, each
// written ?, into the dialect's form.
func (d Dialect) render(statement string) string {
	statement = words[d].Replace(statement)
	if d != PostgreSQL {
		return statement
	}
	var rendered strings.Builder
	for number := 1; ; number++ {
		before, after, found := strings.Cut(statement, "?")
		rendered.WriteString(before)
		if !found {
			return rendered.String()
		}
		fmt.Fprintf(&rendered, "$%d", number)
		statement = after
	}
}

// quote quotes an identifier.
func (d Dialect) quote(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}

// maxList is how many values one statement lists.
const maxList = 500

// inLists calls do for a statement that ends with a list of parameters, written
// %s, with each part of the values after other arguments.
func inLists[T any](d Dialect, statement string, values []T, before []any, do func(statement string, args []any) error) error {
	for part := range slices.Chunk(values, maxList) {
		args := slices.Clone(before)
		for _, value := range part {
			args = append(args, value)
		}
		if err := do(strings.Replace(statement, "%s", d.list(len(before), len(part)), 1), args); err != nil {
			return err
		}
	}
	return nil
}

// list is a list of n parameters after others.
func (d Dialect) list(before, n int) string {
	parameters := make([]string, n)
	for i := range parameters {
		parameters[i] = "?"
		if d == PostgreSQL {
			parameters[i] = fmt.Sprintf("$%d", before+i+1)
		}
	}
	return "(" + strings.Join(parameters, ", ") + ")"
}
