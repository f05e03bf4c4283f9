package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// Snapshot is one sample of one node: everything that its process measured.
type Snapshot struct {
	Node     uuid.UUID
	NodeName string
	At       time.Time // by the database's clock
	Series   []Series
	// Problem says why a sample could not be read, as where a newer release
	// wrote it. Then there are no series.
	Problem error
}

// Position is how far samples were read. The zero value is the start: all that
// are kept. A position is of one server, and lost with it.
type Position string

// maxOldBytes bounds what a reader gets that begins anew, besides the samples of
// the last ten minutes: a few seconds of decoding.
const maxOldBytes = 16 << 20

// readTimeout bounds reading, all calls of the function included.
const readTimeout = 30 * time.Second

// ReadSamples calls fn with the samples of all nodes since a position, the
// oldest first, and returns the next position. Who begins anew gets those that are
// kept, see [Reporter]: of a day, or less where they take more than 16 MB.
//
// Read from one position to the next, every sample comes exactly once, however
// the transactions that wrote them overlap, and transactions of others that take
// long hold nothing up. If fn returns an error, reading ends with it; after any
// error the samples may come again from the old position. All of it is bounded
// by 30 s, or sooner by the context. The database's user needs the privileges of
// [postgres.Backend.WorkGrants].
func ReadSamples(
	ctx context.Context, backend *postgres.Backend, database postgres.Database, after Position, fn func(Snapshot) error,
) (next Position, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	sql, args := readSamples, []any{string(after), keepLasting.Milliseconds()}
	if after == "" {
		sql, args = readAllSamples, []any{keepEach.Milliseconds(), keepLasting.Milliseconds(), maxOldBytes}
	}
	rows, _ := tablesOf(backend, database).Query(ctx, sql, args...) // its error is that of the rows
	var (
		node   *uuid.UUID
		name   *string
		at     *time.Time
		format *int16
		body   []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&next, &node, &name, &at, &format, &body}, func() error {
		if node == nil {
			return nil
		}
		snapshot := Snapshot{Node: *node, NodeName: *name, At: *at}
		families, err := decodeSample(*format, body)
		if err != nil {
			snapshot.Problem = fmt.Errorf("of %s: %w", *name, err)
		}
		snapshot.Series = flatten(families)
		return fn(snapshot)
	})
	if err != nil {
		return "", fmt.Errorf("reading samples: %w", err)
	}
	return next, nil
}
