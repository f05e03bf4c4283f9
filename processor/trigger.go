package processor

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// TriggerSQL returns the statements that create a trigger on your own table, so
// that each insert into it notifies the processors of an installation. Without
// it, they find events by polling. Use the statements in your migrations; they
// can be run repeatedly. Commits that notify wait for one another in the
// server, which matters above some thousand commits per second.
func TriggerSQL(backend *postgres.Backend, table pgx.Identifier) string {
	const name = "tenure_tell_inserts"
	function := pgx.Identifier{name}
	if len(table) > 1 { // with a schema
		function = append(append(pgx.Identifier{}, table[:len(table)-1]...), name)
	}
	channel := quoteLiteral(schema.Of(backend).Channel(Topic))
	return fmt.Sprintf(strings.TrimLeft(createTrigger, "\n"), function.Sanitize(), table.Sanitize(), channel)
}

const createTrigger = `
CREATE OR REPLACE FUNCTION %[1]s() RETURNS trigger
LANGUAGE plpgsql AS $tenure_function$
BEGIN
    PERFORM pg_catalog.pg_notify(TG_ARGV[0], '');
    RETURN NULL;
END
$tenure_function$;

CREATE OR REPLACE TRIGGER tenure_tell_inserts
AFTER INSERT ON %[2]s
FOR EACH STATEMENT EXECUTE FUNCTION %[1]s(%[3]s);
`
