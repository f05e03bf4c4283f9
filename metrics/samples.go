package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres"
)

// Snapshot is one sample of one node with all metrics of its process.
type Snapshot struct {
	Node     uuid.UUID
	NodeName string
	At       time.Time // by the database's clock
	Size     int       // of the stored sample, in bytes; see [KeptEvery]
	Series   []Series
	// Problem says why a sample could not be read, for example because a newer
	// release wrote it. Then there are no series.
	Problem error
}

// Position is the end of the read samples. The zero value is the start of the stored
// samples. A position belongs to one server and is lost with it.
type Position string

// maxOldBytes limits a new reader's samples in addition to the samples of the last ten
// minutes: a few seconds of decoding.
const maxOldBytes = 16 << 20

// readTimeout limits reading, including all calls of the function.
const readTimeout = 30 * time.Second

// ReadSamples calls fn with the samples of all nodes since a position, oldest
// first, and returns the next position. A new reader gets all stored samples,
// see [Reporter]: of one day, or fewer if they take more than 16 MB.
//
// If each call continues from the last position, every sample is returned exactly once,
// even if the writing transactions overlap, and unrelated long transactions delay nothing.
// An error of fn ends the read; after any error, samples may be returned again from the
// old position. A call is limited to 30 s, or less by ctx. The database user needs the
// privileges of [postgres.Backend.WorkGrants].
func ReadSamples(
	ctx context.Context, backend *postgres.Backend, database postgres.Database, after Position, fn func(Snapshot) error,
) (next Position, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	sql, args := readSamples, []any{string(after), keepLasting.Milliseconds()}
	if after == "" {
		sql, args = readAllSamples, []any{keepEach.Milliseconds(), keepLasting.Milliseconds(), maxOldBytes}
	}
	rows, _ := tablesOf(backend, database).Query(ctx, sql, args...) // rows reports the error
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
		snapshot := Snapshot{Node: *node, NodeName: *name, At: *at, Size: len(body)}
		families, err := decodeSample(*format, body)
		if err != nil {
			snapshot.Problem = fmt.Errorf("of %s: %w", *name, err)
		}
		snapshot.Series = flatten(families)
		return fn(snapshot)
	})
	if err != nil {
		return "", fmt.Errorf("read samples: %w", err)
	}
	return next, nil
}
