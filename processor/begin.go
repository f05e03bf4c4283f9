package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/postgres"
)

// ErrOwned is returned while another role runs the processor. A processor belongs to a
// role as long as the role's term is open. The group retries until the term has ended.
var ErrOwned = fmt.Errorf("%w: the processor belongs to another role, which has a leader", tenure.ErrRefused)

// begin claims the processor for this term.
func (l *loop) begin(ctx context.Context) error {
	if err := l.claim(ctx); err != nil {
		return fmt.Errorf("take over %s: %w", l.config.Name, err)
	}
	l.refusal = ""
	if err := l.checkLog(ctx); err != nil {
		return err
	}
	l.state.busy, l.stateKnown, l.unsaved = true, false, unsaved{}
	return l.fenced(ctx, func(tx pgx.Tx) error {
		started, err := tx.Exec(ctx, l.tables.SQL(startProcessor), l.claimArgs()...)
		if err == nil && started.RowsAffected() == 0 {
			err = errMoved
		}
		return err
	})
}

// claim makes the processor this term's, unless it belongs to another role. Open
// transactions of earlier terms either have finished before this one locked the row, or
// will find the row owned by this term.
func (l *loop) claim(ctx context.Context) error {
	if err := l.createTables(ctx); err != nil {
		return err
	}
	// Check before ending transactions of earlier terms: the transactions of a role with a
	// leader must continue.
	err := l.checkOwner(func(into ...any) error { return l.one(ctx, readOwner, l.claimArgs()[:2], into...) })
	if err != nil {
		return err
	}
	cursor, add, err := l.newCursor(ctx)
	if err != nil {
		return err
	}
	options := l.txOptions(readCommitted, l.trustWindow())
	var lineage string
	err = postgres.InTxOptions(ctx, l.database, options, l.term, func(tx pgx.Tx) error {
		// Do this first: the following statements could wait for the locks of these
		// transactions.
		if err := schema.EndStaleTransactions(ctx, tx, l.markKey()); err != nil {
			return err
		}
		if add {
			if err := l.add(ctx, tx, cursor); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, l.tables.SQL(lockProcessor), l.config.Name); err != nil {
			return err
		}
		// A separate statement also sees terms begun before the lock was acquired.
		if err := l.checkOwner(tx.QueryRow(ctx, l.tables.SQL(readOwner), l.claimArgs()[:2]...).Scan); err != nil {
			return err
		}
		log := l.config.Log
		seen, _ := l.lastServers.Load(l.config.Name)
		known, _ := seen.(string) // an old server that is back does not know that there was another one
		return tx.QueryRow(ctx, l.tables.SQL(claimProcessor), l.config.Name, l.config.Kind, l.term.Role().Name(), l.term.Number(),
			l.node.ID(), l.node.Name(), l.config.Reset != nil || l.config.Publish != nil, log.Name, log.Table, log.columns(), known).
			Scan(&lineage)
	})
	if err == nil {
		l.lastServers.Store(l.config.Name, lineage)
	}
	return err
}

// add adds the processor with a cursor, unless it exists.
func (l *loop) add(ctx context.Context, tx pgx.Tx, cursor Cursor) error {
	_, err := tx.Exec(ctx, l.tables.SQL(addProcessor), l.config.Name, l.config.Kind, l.term.Role().Name(),
		fmt.Sprint(cursor.Transaction), cursor.Position)
	return err
}

// createTables creates the tables of processors. If the processor reads the log of package
// eventstore, it also creates the log's table: the processor reads it before the first
// event.
func (l *loop) createTables(ctx context.Context) error {
	if err := l.tables.Create(ctx); err != nil {
		return err
	}
	if l.config.Log.Table != l.tables.SQL("{events}") {
		return nil
	}
	return l.tables.Ensure(ctx, l.database, features.Events)
}

// checkOwner returns an error if another role runs the processor.
func (l *loop) checkOwner(scan func(into ...any) error) error {
	var role, node string
	var term int64
	err := scan(&role, &term, &node)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read its owner: %w", err)
	}
	return fmt.Errorf("%w: %s, whose term %d is that of node %s; this node runs it under %s: "+
		"give the processor one role on all nodes, or another name",
		ErrOwned, role, term, node, l.term.Role().Name())
}

// recordRefusal logs the refusal by another role's ownership, once per term of the other
// role, and records it in the processor's row.
func (l *loop) recordRefusal(ctx context.Context, err error) {
	if text := err.Error(); text != l.refusal {
		l.refusal = text
		l.log.Error("another role runs the processor; it starts here when that term has ended", "error", err)
	}
	limited, cancel := context.WithTimeout(ctx, l.trustWindow())
	defer cancel()
	_, err = l.database.Exec(limited, l.tables.SQL(recordRefusal), l.config.Name, l.term.Role().Name(), l.node.Name())
	if err != nil && ctx.Err() == nil {
		l.log.Warn("recording the refusal failed", "error", err)
	}
}
