package schema

import "strings"

// Identity is a column with values from a sequence.
type Identity struct{ Table, Column string }

// Identities returns the columns of a feature with values from sequences.
func (f *Feature) Identities() []Identity {
	var all []Identity
	for _, p := range f.Parts {
		if p.Kind == KindColumn && parseColumn(p.Shape).identity != "" {
			table, column, _ := strings.Cut(p.Object, ".")
			all = append(all, Identity{table, column})
		}
	}
	return all
}

// Advance is a template: it moves a sequence beyond the values of the table. Rows copied
// without the position of the sequence would be in the way of new ones.
func (c Identity) Advance() string {
	return `
SELECT setval(s.sequence, m.most)
FROM (SELECT pg_get_serial_sequence(c.oid::regclass::text, '` + c.Column + `')::regclass AS sequence FROM pg_class c WHERE c.oid = {` + c.Table + `:regclass}) s,
    (SELECT max(` + c.Column + `) AS most FROM {` + c.Table + `}) m
WHERE m.most > coalesce(pg_sequence_last_value(s.sequence), 0);`
}

// Finishing returns the statements of a feature's migrations for a repair to repeat at its
// end: comments, and how columns are stored.
func (n Names) Finishing(f *Feature) []string {
	var all []string
	for _, statement := range f.statements() {
		if strings.HasPrefix(statement, "COMMENT ") || strings.HasPrefix(statement, "ALTER TABLE ") && strings.Contains(statement, " SET STORAGE ") {
			all = append(all, n.SQL(statement))
		}
	}
	return all
}
