// Package view projects events into tables, each event exactly once: the writes of a
// projection commit in one transaction with its cursor, and only while its term is valid.
package view

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// Role returns the usual role of views, "views".
func Role() tenure.Role { return tenure.NamedRole("views") }

// Config configures a view. Name, Log, and one of Project and ProjectBatch must
// be set.
type Config struct {
	Name      string
	Log       processor.Log
	Selection processor.Selection // default: all events

	// Project projects one event; ProjectBatch projects a batch, and is faster. Their
	// writes through tx take effect exactly once, other effects can be repeated. They must
	// not end the transaction.
	Project      func(ctx context.Context, tx pgx.Tx, event processor.Event) error
	ProjectBatch func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error

	// Tables are truncated when the view is rebuilt. Each one is the name of a table, or
	// of a schema and a table. Reset, if set, runs afterwards.
	Tables []pgx.Identifier
	Reset  func(ctx context.Context, tx pgx.Tx) error

	// Processing sets Start, times, sizes, policies and CursorsOnly. Its other fields
	// are ignored.
	Processing processor.Config
}

// New returns the processor of a view. Add it to a group. An error matches
// tenure.ErrInvalidConfig.
func New(config Config) (processor.Config, error) {
	if (config.Project == nil) == (config.ProjectBatch == nil) {
		return processor.Config{}, fmt.Errorf("%w: the view %s needs one of Project and ProjectBatch", tenure.ErrInvalidConfig, config.Name)
	}
	for _, table := range config.Tables {
		if len(table) == 0 {
			return processor.Config{}, fmt.Errorf("%w: a table of the view %s has no name", tenure.ErrInvalidConfig, config.Name)
		}
	}
	result := config.Processing
	result.Name, result.Kind, result.Log, result.Selection = config.Name, "view", config.Log, config.Selection
	result.Publish = nil
	result.Handle = config.ProjectBatch
	if result.Handle == nil {
		result.Handle = func(ctx context.Context, tx pgx.Tx, batch []processor.Event) error {
			for _, event := range batch {
				if err := config.Project(ctx, tx, event); err != nil {
					return fmt.Errorf("event %v: %w", event.Cursor, err)
				}
			}
			return nil
		}
	}
	result.Reset = nil
	if len(config.Tables) > 0 || config.Reset != nil {
		result.Reset = config.reset
	}
	return result, nil
}

// reset empties the view.
func (c Config) reset(ctx context.Context, tx pgx.Tx) error {
	if len(c.Tables) > 0 {
		names := make([]string, len(c.Tables))
		for i, table := range c.Tables {
			names[i] = table.Sanitize()
		}
		if _, err := tx.Exec(ctx, "TRUNCATE "+strings.Join(names, ", ")); err != nil {
			return err
		}
	}
	if c.Reset == nil {
		return nil
	}
	return c.Reset(ctx, tx)
}
