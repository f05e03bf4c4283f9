package postgres

import "github.com/exactly-one/tenure/internal/schema"

// names are those of the objects and notification channels of an installation.
type names struct{ schema.Names }

// sql returns the statement with its objects named.
func (n names) sql(template string) string { return n.SQL(template) }

// channel is for notifications that something about elections may have changed.
func (n names) channel() string { return n.Channel("") }

// nodesChannel is for notifications that nodes joined or changed their
// descriptions, which makes no role vacant.
func (n names) nodesChannel() string { return n.Channel("nodes") }
