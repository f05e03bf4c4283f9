// Package eventstore is a minimal append-only log of events in PostgreSQL, for
// package processor to read. It is for those who have none: a table of yours
// serves as well, see [processor.LogFromQuery].
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

// MaxData is the most bytes of an event's data.
const MaxData = 1 << 20

// Store is the log of one installation. It is safe for concurrent use.
type Store struct {
	backend *postgres.Backend
	config  Config
}

// Config configures a store. The zero value is ready to use.
type Config struct {
	// NoNotify appends without telling: processors find the events when they poll.
	// Commits that tell wait for each other in the server, which shows above
	// some thousand commits a second.
	NoNotify bool
}

// New returns the log in the schema of a backend, which it does not create: a
// node does, or [postgres.Backend.Migrate].
func New(backend *postgres.Backend, config Config) *Store {
	return &Store{backend: backend, config: config}
}

// NewEvent is an event to append.
type NewEvent struct {
	Type        string    // must be given
	Tags        []string  // each "key=value"
	Data        any       // anything that encoding/json can marshal; json.RawMessage as it is
	OccurredAt  time.Time // default now, by the database's clock
	Correlation uuid.UUID // default none
	Causation   uuid.UUID // default none
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

// Executor is what Append works in: a pgx.Tx, a *pgx.Conn or a pool.
type Executor interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Append appends events, in this order, in the caller's transaction: they are in
// the log when it commits. It returns an error that matches
// tenure.ErrInvalidConfig, and appends nothing, if an event has no type, a tag
// is not of the form key=value, or its data has more than MaxData bytes. The
// database user needs the privileges of [postgres.Backend.WorkGrants], or INSERT
// on the table of events alone.
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
			return fmt.Errorf("%w: event %d has the type %q; a type is a text of 1 to %d bytes", tenure.ErrInvalidConfig, i, e.Type, tenure.MaxRoleName)
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
			return fmt.Errorf("%w: the data of event %d has %d bytes; at most %d are taken", tenure.ErrInvalidConfig, i, len(text), MaxData)
		}
		named, err := json.Marshal(append([]string{}, e.Tags...))
		if err != nil {
			return err
		}
		types, tags, data = append(types, e.Type), append(tags, string(named)), append(data, string(text))
		occurred = append(occurred, orNull(e.OccurredAt))
		correlation, causation = append(correlation, orNull(e.Correlation)), append(causation, orNull(e.Causation))
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

func orNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

const readEvents = `
SELECT transaction_id, position, type, tags, data, occurred_at, correlation_id, causation_id FROM {events}`

// Log returns the log for a processor to read.
func (s *Store) Log() processor.Log {
	log := processor.LogFromQuery("events", s.backend.SQL(readEvents))
	log.Table = s.backend.SQL("{events}")
	return log
}
