package schema

import "testing"

func TestSQLNamesObjects(t *testing.T) {
	t.Parallel()
	n := NewNames("s", `o'd "`)
	for template, want := range map[string]string{
		"SELECT FROM {nodes}, {terms}":               `SELECT FROM "s"."o'd ""nodes", "s"."o'd ""terms"`,
		"CREATE INDEX {schema}.\"{prefix}at\"":       `CREATE INDEX "s"."o'd ""at"`,
		"nextval({membership:regclass})":             `nextval(E'"s"."o''d ""membership"'::regclass)`,
		"'{watch}(integer)'::regprocedure":           `'"s"."o'd ""watch"(integer)'::regprocedure`,
		"'{}' '{hook}' '{SCHEMA,TABLE}' '{\"a\": 1}": `'{}' '{hook}' '{SCHEMA,TABLE}' '{"a": 1}`,
		"{unclosed {nodes":                           "{unclosed {nodes",
		"{ {nodes} }":                                `{ "s"."o'd ""nodes" }`,
	} {
		if got := n.SQL(template); got != want {
			t.Errorf("%s: %s; want %s", template, got, want)
		}
	}
}
