package connect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/exactly-one/tenure/dberr"
)

// tablesPause is the time between two looks for the tables.
const tablesPause = time.Second

// AwaitTables calls read, and again while there are no tables: the first node creates
// them, and a command to follow the leaders may start before it. It returns nil when ctx
// ends.
func AwaitTables(ctx context.Context, backend Backend, log *slog.Logger, read func(context.Context) error) error {
	for waits := false; ; waits = true {
		err := read(ctx)
		if !errors.Is(err, dberr.ErrSchema) {
			return unlessEnded(ctx, err)
		}
		version, versionErr := backend.SchemaVersion(ctx)
		switch {
		case versionErr != nil:
			return unlessEnded(ctx, err)
		case version > 0: // a node may have created them since
			return unlessEnded(ctx, read(ctx))
		case !waits:
			log.Warn("waiting for the tables, which a node or tenure migrate creates", "error", err)
		}
		select {
		case <-time.After(tablesPause):
		case <-ctx.Done():
			return nil
		}
	}
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
