package lease

import (
	"fmt"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// NodeGrants returns the GRANT statements for the database user of nodes, if it does not
// own the tables. On MySQL the user can be written name@host, and the statements apply to
// the connection's default database. SQLite has no users: the error matches
// tenure.ErrInvalidConfig.
func (b *Backend) NodeGrants(user string) (string, error) {
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

// ApplicationGrants is [Backend.NodeGrants] for an application without a node. It may
// fence transactions with [InTx] or [Fence].
func (b *Backend) ApplicationGrants(user string) (string, error) {
	allowed := "SELECT"
	if b.db.Dialect == sqldb.PostgreSQL {
		allowed = "SELECT, UPDATE (fence)" // locking a row requires UPDATE on one of its columns
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
		return "", fmt.Errorf("%w: %s has no users: every user who can write the file can run a node", tenure.ErrInvalidConfig, b.db.Dialect)
	}
	var all strings.Builder
	if b.config.Schema != "" {
		fmt.Fprintf(&all, "GRANT USAGE ON SCHEMA %s TO %s;\n", b.db.Dialect.Quote(b.config.Schema), grantee)
	}
	for _, table := range tables {
		fmt.Fprintf(&all, "GRANT %s ON %s TO %s;\n", table[0], b.names.Replace(table[1]), grantee)
	}
	return all.String(), nil
}
