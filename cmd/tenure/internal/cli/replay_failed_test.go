package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

// A dead letter that fails again during its replay is listed as such, and the audit has a
// failed replay with the requester and the error.
func TestFailedReplayIsShown(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	store := place.processors(t, processor.Config{
		Name: "counts", MaxAttempts: 1, PollInterval: 10 * time.Millisecond, Poison: processor.PoisonDeadLetter,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return errors.New("13 is unlucky") },
	})
	eventually(t, "the tables", func() bool { return invoke(t, place.with("processor", "list")...).code == console.ExitDone })
	place.append(t, store, 13)
	place.awaitProcessor(t, "counts", "the dead letter", func(r record.Processor) bool { return r.DeadLetters == 1 })
	on := func(args ...string) string {
		t.Helper()
		return invoke(t, place.with(args...)...).want(t, console.ExitDone).stdout
	}
	on("processor", "replay", "counts", "--all", "--by", "ann")
	var letters record.DeadLetters
	eventually(t, "a failed replay in JSON", func() bool {
		invoke(t, place.with("processor", "dead-letters", "counts", "-o", "json")...).want(t, console.ExitDone).decode(t, &letters)
		return len(letters.DeadLetters) == 1 && !time.Time(letters.DeadLetters[0].ReplayFailedAt).IsZero()
	})
	if l := letters.DeadLetters[0]; l.Replay || l.ReplayBy != "ann" || l.Attempts != 2 {
		t.Errorf("after the failed replay the dead letter is %+v; want one that waits for no replay, with ann as the requester", l)
	}
	if text := strings.Join(strings.Fields(on("processor", "dead-letters", "counts")), " "); !strings.Contains(text, "failed again") {
		t.Errorf("the dead letters are\n%s\nwant one that failed again", text)
	}
	var actions record.Audit
	invoke(t, place.with("audit", "-o", "json")...).want(t, console.ExitDone).decode(t, &actions)
	if len(actions.Actions) != 2 {
		t.Fatalf("the audit is %+v; want the replay and its failure", actions)
	}
	failed := actions.Actions[0]
	if failed.Action != "replay_failed" || failed.Result != "failed" || failed.By != "ann" || failed.Name != "counts" || !strings.Contains(failed.Detail, "13 is unlucky") {
		t.Errorf("the audit begins with %+v; want ann's failed replay with the error", failed)
	}
}
