package lease

import (
	"fmt"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// Grants returns the GRANT statements for a database user under which nodes run
// and which does not own the tables. The user of MySQL may be written name@host;
// its statements are for the connection's default database. SQLite has no users:
// the error matches tenure.ErrInvalidConfig.
func (b *Backend) Grants(user string) (string, error) {
	tables := [][2]string{
		{"SELECT, INSERT, UPDATE, DELETE", "{sessions}"},
		{"SELECT, INSERT, UPDATE", "{seats}"},
		{"SELECT, INSERT, DELETE", "{history}"},
		{"SELECT, INSERT, DELETE", "{requests}"},
		{"SELECT, UPDATE", "{news}"},
	}
	if b.db.Dialect == sqldb.PostgreSQL {
		tables = append(tables, [2]string{"SELECT", b.modeTable()})
	}
	return b.grants(user, tables)
}

// ApplicationGrants is [Backend.Grants] for a database user of an application
// that fences its transactions with [InTx] or [Fence] and runs no node.
func (b *Backend) ApplicationGrants(user string) (string, error) {
	allowed := "SELECT"
	if b.db.Dialect == sqldb.PostgreSQL {
		allowed = "SELECT, UPDATE (fence)" // to lock a row, some column must be allowed to change
	}
	return b.grants(user, [][2]string{{allowed, "{seats}"}})
}

func (b *Backend) grants(user string, tables [][2]string) (string, error) {
	var grantee string
	switch b.db.Dialect {
	case sqldb.PostgreSQL:
		grantee = b.db.Dialect.Quote(user)
	case sqldb.MySQL:
		name, host, found := strings.Cut(user, "@")
		if !found {
			host = "%"
		}
		grantee = b.db.Dialect.Quote(name) + "@" + b.db.Dialect.Quote(host)
	default:
		return "", fmt.Errorf("%w: %s has no users: who may write the file may take part", tenure.ErrInvalidConfig, b.db.Dialect)
	}
	var all strings.Builder
	if b.config.Schema != "" {
		fmt.Fprintf(&all, "GRANT USAGE ON SCHEMA %s TO %s;\n", b.db.Dialect.Quote(b.config.Schema), grantee)
	}
	for _, table := range tables {
		fmt.Fprintf(&all, "GRANT %s ON %s TO %s;\n", table[0], b.queries.names.Replace(table[1]), grantee)
	}
	return all.String(), nil
}
