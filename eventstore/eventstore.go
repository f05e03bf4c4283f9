// Package eventstore is a minimal append-only log of events in PostgreSQL for package
// processor. If you already have a table of events, use [processor.LogFromQuery] instead.
package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/doorbell"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// MaxData is the size limit of an event's data in bytes.
const MaxData = 1 << 20

// Store is the log of one installation. It is safe for concurrent use.
type Store struct {
	schema *schema.Schema
	config Config
	exists atomic.Bool // the table exists, or the user cannot read the versions
}

// Config configures a store. The zero value is ready to use.
type Config struct {
	// NoNotify appends without notifications; processors find the events at their next
	// poll. Only prepared transactions need it: PostgreSQL does not prepare a transaction
	// after a notification.
	NoNotify bool
}

// New returns the log in the schema of a backend. The first Append creates the table on a
// connection of the backend, unless the backend is configured for manual migrations.
func New(backend *postgres.Backend, config Config) *Store {
	return &Store{schema: schema.Of(backend), config: config}
}

// NewEvent is an event to append.
type NewEvent struct {
	Type        string    // required
	Tags        []string  // each "key=value"
	Data        any       // marshaled with encoding/json; json.RawMessage is stored unchanged
	OccurredAt  time.Time // default: now, by the database's clock
	Correlation uuid.UUID // default: none
	Causation   uuid.UUID // default: none
}

const appendEvents = `
INSERT INTO {events} (type, tags, data, occurred_at, correlation_id, causation_id)
SELECT
    e.type,
    ARRAY(SELECT jsonb_array_elements_text(e.tags)),
    e.data,
    coalesce(e.occurred_at, clock_timestamp()),
    e.correlation_id,
    e.causation_id
FROM unnest($1::text[], $2::jsonb[], $3::jsonb[], $4::timestamptz[], $5::uuid[], $6::uuid[]) WITH ORDINALITY
    AS e(type, tags, data, occurred_at, correlation_id, causation_id, number)`

// quietAppend keeps the table's trigger from notifying, until it has appended: later
// statements of the transaction notify.
const quietAppend = `
WITH quiet AS MATERIALIZED (
    SELECT coalesce(current_setting('tenure.append', true), '') AS before, set_config('tenure.append', 'quiet', true)
), appended AS (` + appendEvents + ` CROSS JOIN quiet ORDER BY e.number RETURNING 1)
SELECT set_config('tenure.append', quiet.before, true){notify} FROM (SELECT count(*) FROM appended) counted CROSS JOIN quiet`

// notify notifies in the place of the trigger: it costs less, and the table can be of an
// earlier version, without the trigger.
var notify = ", " + doorbell.Ring("$7::text")

// Executor runs the statement of Append: a pgx.Tx, a *pgx.Conn or a pool.
type Executor interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Append appends events in order. In the caller's transaction they are in the log once it
// commits. If an event has no type, a tag of another form than key=value, or more than
// MaxData bytes of data, Append appends nothing and the error matches
// tenure.ErrInvalidConfig. The database user needs the privileges of
// [postgres.Backend.WorkGrants], or only INSERT on the table of events.
func (s *Store) Append(ctx context.Context, tx Executor, events ...NewEvent) error {
	if len(events) == 0 {
		return nil
	}
	var (
		types, tags, data      []string
		occurred               []*time.Time
		correlation, causation []*uuid.UUID
	)
	for i, e := range events {
		if err := tenure.NamedRole(e.Type).Validate(); err != nil {
			return fmt.Errorf("%w: event %d has the type %q; a type must have 1 to 255 bytes", tenure.ErrInvalidConfig, i, e.Type)
		}
		for _, tag := range e.Tags {
			if err := processor.CheckTag(tag); err != nil {
				return fmt.Errorf("event %d: %w", i, err)
			}
		}
		text, err := json.Marshal(e.Data)
		if err != nil {
			return fmt.Errorf("%w: the data of event %d: %w", tenure.ErrInvalidConfig, i, err)
		}
		if len(text) > MaxData {
			return fmt.Errorf("%w: the data of event %d has %d bytes; the limit is %d", tenure.ErrInvalidConfig, i, len(text), MaxData)
		}
		tagList, err := json.Marshal(append([]string{}, e.Tags...))
		if err != nil {
			return err
		}
		types, tags, data = append(types, e.Type), append(tags, string(tagList)), append(data, string(text))
		occurred = append(occurred, nullIfZero(e.OccurredAt))
		correlation, causation = append(correlation, nullIfZero(e.Correlation)), append(causation, nullIfZero(e.Causation))
	}
	return s.insert(ctx, tx, types, tags, data, occurred, correlation, causation)
}

// insert runs the statement to append events, with its parameters.
func (s *Store) insert(ctx context.Context, tx Executor, args ...any) error {
	sql := strings.Replace(quietAppend, "{notify}", "", 1)
	if !s.config.NoNotify {
		sql, args = strings.Replace(quietAppend, "{notify}", notify, 1), append(args, s.schema.Channel(processor.Topic))
	}
	createErr := s.create(ctx, tx)
	if createErr != nil && !errors.Is(createErr, dberr.ErrPrivilege) {
		return fmt.Errorf("append events: %w", createErr)
	}
	rows, err := tx.Query(ctx, s.schema.SQL(sql), args...)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		var failure *pgconn.PgError
		if errors.As(err, &failure) && failure.Code == codeUndefinedTable { // it was removed: the next call creates it
			s.schema.Forget()
			s.exists.Store(false)
		}
		return fmt.Errorf("append events: %w", errors.Join(createErr, err))
	}
	return nil
}

const codeUndefinedTable = "42P01"

// mayReadVersions selects false if the table of versions exists and the user cannot read it.
const mayReadVersions = `SELECT coalesce(has_table_privilege(to_regclass($1), 'SELECT'), to_regclass($1) IS NULL)`

// create creates the table of events if it is missing. A user with the privilege to append
// need not have the privilege to read the versions, so create checks it first: an error of
// the server would abort the caller's transaction.
func (s *Store) create(ctx context.Context, tx Executor) error {
	if s.exists.Load() {
		return nil
	}
	rows, _ := tx.Query(ctx, mayReadVersions, s.schema.SQL("{migrations}")) // CollectExactlyOneRow returns the error of the query too
	may, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err == nil && may {
		err = s.schema.Ensure(ctx, tx, features.Events)
	}
	s.exists.Store(err == nil)
	return err
}

func nullIfZero[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

const readEvents = `
SELECT transaction_id, position, type, tags, data, occurred_at, correlation_id, causation_id FROM {events}`

// Log returns the log for processors.
func (s *Store) Log() processor.Log {
	log := processor.LogFromQuery("events", s.schema.SQL(readEvents))
	log.Table = s.schema.SQL("{events}")
	return log
}
