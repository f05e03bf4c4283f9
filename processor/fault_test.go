package processor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// Database errors during attempts blame no event: however often they happen, no
// event is moved to the dead letters, and the processor shows the error.
func TestDatabaseErrorsBlameNoEvent(t *testing.T) {
	t.Parallel()
	raise := func(code string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'as the server would' USING ERRCODE = '"+code+"'; END $$")
			return err
		}
	}
	spoilers := map[string]func(context.Context, pgx.Tx) error{
		"the session is ended": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
		"the session is ended, and the handler does not say so": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return fmt.Errorf("no success: %s", err) //nolint:errorlint // the handler hides the cause
		},
		"the connection is cut": func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.Conn().PgConn().Conn().Close() // below pgx: as the network does it
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		},
		"read only": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET TRANSACTION READ ONLY"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "CREATE TABLE never (number int)")
			return err
		},
		"a lock that is not available": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '5ms'"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "SELECT pg_sleep(10)")
			return err
		},
		"another server cannot be reached": func(ctx context.Context, _ pgx.Tx) error {
			_, err := pgconn.Connect(ctx, "postgres://127.0.0.1:1/none?connect_timeout=5")
			return err
		},
	}
	quick := []string{"the session is ended", "the connection is cut", "read only", "SQLSTATE 40001"}
	codes := []string{"40001", "40P01", "08006", "53100", "53300", "55P03", "57014", "57P01", "57P03", "58030", "XX000"}
	for _, code := range codes {
		spoilers["SQLSTATE "+code] = raise(code)
	}
	for name, spoil := range spoilers {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(quick, name) {
				pgtest.Long(t)
			}
			t.Parallel()
			w := newWorld(t)
			w.append(1, 2, 3)
			var calls atomic.Int64
			const faults = 5 // more than MaxAttempts
			w.group(w.Node("a", tenure.Config{}), processor.Config{
				Name: "counts", MaxAttempts: 2, Poison: processor.PoisonDeadLetter, PollInterval: time.Millisecond,
				// It has its say about handlers only.
				Retry: retry.Func(func(retry.Failure) (time.Duration, bool) { return 0, false }),
				Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
					if calls.Add(1) <= faults {
						if err := spoil(ctx, tx); err != nil {
							return fmt.Errorf("handling: %w", err)
						}
						t.Error("nothing was spoiled")
					}
					return w.fill(ctx, tx, batch)
				},
			})
			w.Await("the error of the database is shown", func() bool { return w.exists("counts") && w.show("counts").LastError != "" })
			w.Await("all events", func() bool { return len(w.numbers()) >= 3 && w.show("counts").Processed >= 3 })
			s := w.show("counts")
			if got := w.numbers(); !slices.Equal(got, []int{1, 2, 3}) || s.DeadLetters != 0 || s.Status != processor.Active {
				t.Errorf("handled %v, and the processor is %+v", got, s)
			}
			if !strings.Contains(s.LastError, "database") {
				t.Errorf("the last error is %q", s.LastError)
			}
		})
	}
}

// A handler that always causes such an error does not stop the processor, and
// the error is shown: it cannot be distinguished from a failing database.
func TestPermanentDatabaseErrorIsRetriedAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append(1)
	var mended atomic.Bool
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", MaxAttempts: 2, PollInterval: time.Millisecond,
		Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			if !mended.Load() {
				_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'always' USING ERRCODE = '40001'; END $$")
				return err
			}
			return w.fill(ctx, tx, batch)
		},
	})
	w.Await("attempts", func() bool { return w.exists("counts") && w.show("counts").Errors >= 5 })
	s := w.show("counts")
	if s.Status != processor.Active || s.NextAttemptAt.IsZero() || !strings.Contains(s.LastError, "40001") || s.Failing != (processor.Cursor{}) {
		t.Errorf("shown as %+v", s)
	}
	mended.Store(true)
	w.Await("the event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
}

// Transaction conflicts that are detected at the commit do not count either.
func TestCommitConflictsBlameNoEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sequence := pgx.Identifier{w.Schema, "attempts"}.Sanitize()
	function := pgx.Identifier{w.Schema, "conflict"}.Sanitize()
	w.Exec("CREATE SEQUENCE " + sequence)
	w.Exec("CREATE FUNCTION " + function + "() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('" + sequence +
		"') <= 5 THEN RAISE EXCEPTION 'a conflict' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$")
	w.Exec("CREATE CONSTRAINT TRIGGER conflict AFTER INSERT ON " + w.filled + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + function + "()")
	w.append(1)
	w.group(w.Node("a", tenure.Config{}), processor.Config{
		Name: "counts", MaxAttempts: 2, Poison: processor.PoisonDeadLetter, PollInterval: time.Millisecond, Handle: w.fill,
	})
	w.Await("the event", func() bool { return slices.Equal(w.numbers(), []int{1}) })
	if s := w.show("counts"); s.DeadLetters != 0 || !strings.Contains(s.LastError, "a conflict") {
		t.Errorf("after conflicts at the commit the processor is %+v; want their cause as its last error and no dead letter", s)
	}
}

// A replay that fails with a database error is retried. After many attempts the
// event stays a dead letter, so that new events are handled.
func TestReplayIsRetriedAfterDatabaseErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults int64
		done   bool
	}{
		"a few times": {faults: 4, done: true},
		"for ever":    {faults: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var replaying atomic.Bool
			var calls atomic.Int64
			w.group(w.Node("a", tenure.Config{}), processor.Config{
				Name: "counts", PollInterval: time.Millisecond, MaxPollInterval: 5 * time.Millisecond, Poison: processor.PoisonDeadLetter,
				Handle: func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
					switch {
					case string(batch[0].Data) != "1":
					case !replaying.Load():
						return processor.ErrPoison
					case calls.Add(1) <= c.faults:
						_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'a conflict' USING ERRCODE = '40P01'; END $$")
						return err
					}
					return w.fill(ctx, tx, batch)
				},
			})
			w.append(1)
			w.Await("the dead letter", func() bool { return w.exists("counts") && w.show("counts").DeadLetters == 1 })
			replaying.Store(true)
			_, err := w.management().Replay(t.Context(), "counts", nil, "ann")
			w.must(err)
			w.Await("the first attempt", func() bool { return calls.Load() > 0 })
			w.Await("the end of the replay", func() bool {
				letters := w.letters("counts")
				return len(letters) == 0 || !letters[0].Replay
			})
			w.append(2)
			w.Await("the other event", func() bool { return slices.Contains(w.numbers(), 2) })
			if c.done {
				if got := w.numbers(); !slices.Equal(got, []int{1, 2}) || w.show("counts").DeadLetters != 0 {
					t.Errorf("handled %v, with %d dead letters", got, w.show("counts").DeadLetters)
				}
				return
			}
			letters, err := w.management().DeadLetters(t.Context(), "counts", 10)
			w.must(err)
			if len(letters) != 1 || letters[0].Replay || !strings.Contains(letters[0].Error, "a conflict") {
				t.Errorf("the dead letters are %+v", letters)
			}
		})
	}
}
