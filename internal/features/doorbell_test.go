package features

import (
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/doorbell"
)

// The migration has a copy, because a migration must not change with the program.
func TestTriggerOfTheLogIsThatOfTheDoorbell(t *testing.T) {
	t.Parallel()
	if migration := Events.Steps[len(Events.Steps)-1].Up; !strings.Contains(migration, doorbell.TriggerBody) {
		t.Errorf("the migration of the log does not have the trigger's body\n%s", doorbell.TriggerBody)
	}
}
