package processor

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// TriggerSQL returns the statements to create a trigger on your own table: each insert
// into the table then notifies the processors of an installation. Without the trigger,
// they find events by polling. Use the statements in your migrations; they can be run
// repeatedly. An insert notifies only while a leader of processors waits for one, so
// writers do not wait for each other.
func TriggerSQL(backend *postgres.Backend, table pgx.Identifier) string {
	const name = "tenure_tell_inserts"
	function := pgx.Identifier{name}
	if len(table) > 1 { // with a schema
		function = append(append(pgx.Identifier{}, table[:len(table)-1]...), name)
	}
	channel := quoteLiteral(schema.Of(backend).Channel(Topic))
	return fmt.Sprintf(strings.TrimLeft(createTrigger, "\n"), function.Sanitize(), table.Sanitize(), channel, doorbell.TriggerBody)
}

const createTrigger = `
CREATE OR REPLACE FUNCTION %[1]s() RETURNS trigger
LANGUAGE plpgsql AS $tenure_function$%[4]s$tenure_function$;

CREATE OR REPLACE TRIGGER tenure_tell_inserts
AFTER INSERT ON %[2]s
FOR EACH STATEMENT EXECUTE FUNCTION %[1]s(%[3]s);
`
