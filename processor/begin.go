package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/features"
	"github.com/exactly-one/tenure/postgres"
)

// ErrOwned says that another role runs the processor at present: a processor
// belongs to one role as long as that role's term is open. The group tries again
// until the term has ended.
var ErrOwned = fmt.Errorf("%w: the processor belongs to another role that is led", tenure.ErrRefused)

// begin takes the processor over.
func (l *loop) begin(ctx context.Context) error {
	if err := l.claim(ctx); err != nil {
		return fmt.Errorf("taking over %s: %w", l.config.Name, err)
	}
	l.refusal = ""
	if err := l.checkLog(ctx); err != nil {
		return err
	}
	l.busy, l.known, l.unsaved = true, false, unsaved{}
	return l.fenced(ctx, func(tx pgx.Tx) error {
		started, err := tx.Exec(ctx, l.tables.SQL(startProcessor), l.claimed()...)
		if err == nil && started.RowsAffected() == 0 {
			err = errMoved
		}
		return err
	})
}

// claim makes the processor this term's, unless it is another role's. What
// earlier terms have left open is over then: it has locked the row, or will find
// that the row is no longer its own.
func (l *loop) claim(ctx context.Context) error {
	if err := l.createTables(ctx); err != nil {
		return err
	}
	// Before the transactions of others are ended: those of a role that is led
	// must not be.
	err := l.checkOwner(func(into ...any) error { return l.one(ctx, readOwner, l.claimed()[:2], into...) })
	if err != nil {
		return err
	}
	options := l.begins(readCommitted, l.window())
	var lineage string
	err = postgres.InTxOptions(ctx, l.database, options, l.term, func(tx pgx.Tx) error {
		// First of all: what follows could wait for their locks.
		if err := postgres.EndStaleTransactions(ctx, tx, l.key()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, l.tables.SQL(addProcessor), l.config.Name, l.config.Kind, l.term.Role().Name()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, l.tables.SQL(lockProcessor), l.config.Name); err != nil {
			return err
		}
		// In a statement of its own, which sees terms that began before the lock.
		if err := l.checkOwner(tx.QueryRow(ctx, l.tables.SQL(readOwner), l.claimed()[:2]...).Scan); err != nil {
			return err
		}
		log := l.config.Log
		seen, _ := l.lineages.Load(l.config.Name)
		known, _ := seen.(string) // an old server that is back does not know that there was another one
		return tx.QueryRow(ctx, l.tables.SQL(claimProcessor), l.config.Name, l.config.Kind, l.term.Role().Name(), l.term.Number(),
			l.node.ID(), l.node.Name(), l.config.Reset != nil || l.config.Publish != nil, log.Name, log.Table, log.columns(), known).
			Scan(&lineage)
	})
	if err == nil {
		l.lineages.Store(l.config.Name, lineage)
	}
	return err
}

// createTables creates the tables of processors, and that of package eventstore if
// the processor reads it: else it could not be read before the first event.
func (l *loop) createTables(ctx context.Context) error {
	if err := l.tables.Create(ctx); err != nil {
		return err
	}
	if l.config.Log.Table != l.tables.SQL("{events}") {
		return nil
	}
	return l.tables.Ensure(ctx, l.database, features.Events)
}

// checkOwner refuses a processor that another role runs.
func (l *loop) checkOwner(scan func(into ...any) error) error {
	var role, node string
	var term int64
	err := scan(&role, &term, &node)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading whose it is: %w", err)
	}
	return fmt.Errorf("%w: %s, whose term %d is that of node %s; this node runs it under %s: "+
		"give the processor one role on all nodes, or another name",
		ErrOwned, role, term, node, l.term.Role().Name())
}

// refused logs that the processor is another role's, once for each term of that,
// and notes it in the processor's row.
func (l *loop) refused(ctx context.Context, err error) {
	if text := err.Error(); text != l.refusal {
		l.refusal = text
		l.log.Error("the processor does not run here until the other term has ended", "error", err)
	}
	limited, cancel := context.WithTimeout(ctx, l.window())
	defer cancel()
	_, err = l.database.Exec(limited, l.tables.SQL(recordRefusal), l.config.Name, l.term.Role().Name(), l.node.Name())
	if err != nil && ctx.Err() == nil {
		l.log.Warn("showing that failed", "error", err)
	}
}
