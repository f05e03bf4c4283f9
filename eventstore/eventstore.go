// Package eventstore is a minimal append-only log of events in PostgreSQL that package
// processor can read. If you already have a table of events, use
// [processor.LogFromQuery] instead.
package eventstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// MaxData is the size limit of an event's data in bytes.
const MaxData = 1 << 20

// Store is the log of one installation. It is safe for concurrent use.
type Store struct {
	backend *postgres.Backend
	config  Config
}

// Config configures a store. The zero value is ready to use.
type Config struct {
	// NoNotify appends without notifications; processors find the events at their next
	// poll. The server serializes commits with notifications, which limits throughput
	// above some thousand commits per second.
	NoNotify bool
}

// New returns the log in the schema of a backend. It does not create the tables: a node
// or [postgres.Backend.Migrate] does.
func New(backend *postgres.Backend, config Config) *Store {
	return &Store{backend: backend, config: config}
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
    AS e(type, tags, data, occurred_at, correlation_id, causation_id, number)
ORDER BY e.number`

// Executor runs the statement of Append: a pgx.Tx, a *pgx.Conn or a pool.
type Executor interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Append appends events in order. In the caller's transaction they are in the log once
// it commits. If an event has no type, a tag that is not key=value, or more than MaxData
// bytes of data, Append appends nothing and the error matches tenure.ErrInvalidConfig.
// The database user needs the privileges of [postgres.Backend.WorkGrants], or only
// INSERT on the table of events.
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
			return fmt.Errorf("%w: event %d has the type %q; a type must have 1 to %d bytes", tenure.ErrInvalidConfig, i, e.Type, tenure.MaxRoleName)
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
	sql := s.backend.SQL(appendEvents)
	args := []any{types, tags, data, occurred, correlation, causation}
	if !s.config.NoNotify {
		sql = "WITH appended AS (" + sql + " RETURNING 1) SELECT pg_notify($7, '') FROM (SELECT count(*) FROM appended) counted"
		args = append(args, s.backend.Channel(processor.Topic))
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("append events: %w", err)
	}
	return nil
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

// Log returns the log that processors read.
func (s *Store) Log() processor.Log {
	log := processor.LogFromQuery("events", s.backend.SQL(readEvents))
	log.Table = s.backend.SQL("{events}")
	return log
}
