package sqldb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exactly-one/tenure"
)

// Dialect is the SQL dialect of a database; see lease.Dialect.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1
	SQLite
	MySQL // also MariaDB
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

// Validate returns an error matching tenure.ErrInvalidConfig unless d is a dialect.
func (d Dialect) Validate() error {
	if d < PostgreSQL || d > MySQL {
		return fmt.Errorf("%w: there is no SQL dialect %d", tenure.ErrInvalidConfig, uint8(d))
	}
	return nil
}

// placeholders maps each placeholder of a statement to the SQL of a dialect. Times are
// integers, microseconds since 1970 in UTC: every dialect compares them in the same way.
// {now} is the database's clock. {clock number} is the same clock in milliseconds, the
// lowest number of a new term.
var placeholders = map[Dialect]*strings.Replacer{
	PostgreSQL: strings.NewReplacer(
		"{now}", "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
		"{clock number}", "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)",
		"{greatest}", "GREATEST",
		"{for update}", "FOR UPDATE",
		"{skip locked}", "FOR UPDATE SKIP LOCKED",
		"{share}", "FOR KEY SHARE",
		"{insert new}", "INSERT INTO",
		"{unless there}", "ON CONFLICT DO NOTHING",
		"{name}", "text", // compared byte by byte, as {name} of MySQL
		"{text}", "text",
		"{long text}", "text",
		"{counter}", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		"{table options}", "",
	),
	SQLite: strings.NewReplacer(
		// Old versions support only this form. Its precision is one millisecond.
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
		"{long text}", "text",
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
		// Bytes: every collation common to all versions treats some different names as
		// equal, for example if only trailing spaces differ.
		"{name}", "varbinary(255)",
		"{text}", "varchar(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		"{long text}", "mediumtext CHARACTER SET utf8mb4",
		"{counter}", "bigint AUTO_INCREMENT PRIMARY KEY",
		"{table options}", " ENGINE = InnoDB",
	),
}

// Render replaces the placeholders of a statement by the dialect's SQL, and each
// parameter, written ?, by the dialect's form of a parameter.
func (d Dialect) Render(statement string) string {
	statement = placeholders[d].Replace(statement)
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

// Quote quotes an identifier.
func (d Dialect) Quote(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}

// Table returns the quoted name of a table. The schema is empty if the dialect has none.
func (d Dialect) Table(schema, name string) string {
	if schema == "" {
		return d.Quote(name)
	}
	return d.Quote(schema) + "." + d.Quote(name)
}

// DefaultSchema is the schema of tables if the program names none. The search path must
// not decide: programs with different ones would elect one leader each.
func (d Dialect) DefaultSchema() string {
	if d == PostgreSQL {
		return "public"
	}
	return ""
}

// CheckSchema returns an error matching tenure.ErrInvalidConfig for a schema the dialect
// cannot use.
func (d Dialect) CheckSchema(schema string) error {
	if schema != "" && d != PostgreSQL {
		return fmt.Errorf("%w: %s has no schemas: leave the schema empty", tenure.ErrInvalidConfig, d)
	}
	return CheckName("schema", schema)
}

// maxName leaves room for the names of tables and indexes: PostgreSQL keeps 63 bytes of a
// name.
const maxName = 40

// CheckName returns an error matching tenure.ErrInvalidConfig for an unusable name of a
// schema, or start of a table's name.
func CheckName(what, name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("%w: the %s %q must be at most %d bytes", tenure.ErrInvalidConfig, what, name, maxName)
	case strings.ContainsAny(name, "\x00?%{}"):
		return fmt.Errorf("%w: the %s %q must not contain ?, %%, {, } or a zero byte", tenure.ErrInvalidConfig, what, name)
	}
	return nil
}

// MaxList is the highest number of values in a list of one statement.
const MaxList = 500

// InLists splits values into parts of at most MaxList and calls do for each part.
// The statement has %s where the list of the part's parameters goes. The arguments
// of the statement are before, followed by the part.
func InLists[T any](d Dialect, statement string, values []T, before []any, do func(statement string, args []any) error) error {
	for part := range slices.Chunk(values, MaxList) {
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

// list returns a list of n parameters, numbered after the first before ones.
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
