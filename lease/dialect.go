package lease

import "github.com/exactly-one/tenure/lease/internal/sqldb"

// Dialect is the SQL dialect of a database.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = Dialect(sqldb.PostgreSQL) // PostgreSQL 14 or later, also behind a pooler in transaction mode
	SQLite     Dialect = Dialect(sqldb.SQLite)     // SQLite 3.24 or later, one file for the processes of one machine
	MySQL      Dialect = Dialect(sqldb.MySQL)      // MySQL 8.0.1 or later, MariaDB 10.6 or later
)

// String returns the name of the dialect.
func (d Dialect) String() string { return sqldb.Dialect(d).String() }
