package postgres

import "github.com/exactly-one/tenure/internal/schema"

// names are those of the objects and notification channels of an installation.
type names struct{ schema.Names }

// sql returns the statement with its objects named.
func (n names) sql(template string) string { return n.SQL(template) }

// channel tells that something about elections may have changed.
func (n names) channel() string { return n.Channel("") }

// nodesChannel tells that nodes came, or say something else about themselves,
// which makes no role vacant.
func (n names) nodesChannel() string { return n.Channel("nodes") }

// SQL names the objects of the schema in a statement, which stand in braces
// there, as {terms}. It is for the packages that build on this one.
func (b *Backend) SQL(template string) string { return b.names.sql(template) }
