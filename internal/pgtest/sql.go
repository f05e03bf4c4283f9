package pgtest

import "github.com/exactly-one/tenure/internal/schema"

// SQL names the objects of a *postgres.Backend's schema in a statement, which stand
// in braces there, as {terms}.
func SQL(backend any, template string) string { return schema.Of(backend).SQL(template) }
