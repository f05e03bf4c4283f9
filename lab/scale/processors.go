package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/statements"
	"github.com/exactly-one/tenure/processor"
)

// manyProcessors is how many processors read one log.
const manyProcessors = 50

// processors counts the statements that processors of one log send at rest, beside those
// of one processor.
func (b *bench) processors(ctx context.Context) ([]row, error) {
	one, err := b.restingProcessors(ctx, 1)
	if err != nil {
		return nil, err
	}
	many, err := b.restingProcessors(ctx, manyProcessors)
	if err != nil {
		return nil, err
	}
	return []row{costs(fmt.Sprintf("%d processors on one log at rest", manyProcessors), "statements/s", many, "one processor", one)}, nil
}

func (b *bench) restingProcessors(ctx context.Context, count int) (perSecond float64, err error) {
	config, err := pgxpool.ParseConfig(b.dsn)
	if err != nil {
		return 0, err
	}
	sent := &statements.Counter{}
	config.ConnConfig.Tracer = sent
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	b.role++
	group, err := processor.NewGroup(b.member.Node(), tenure.NamedRole(fmt.Sprint("resting ", b.role)), pool, processor.GroupConfig{})
	if err != nil {
		return 0, err
	}
	for i := range count {
		config := processor.Config{Name: fmt.Sprintf("resting %d.%d", b.role, i), Log: b.store.Log(), Handle: func(context.Context, pgx.Tx, []processor.Event) error { return nil }}
		config.Start.End = true
		if err := group.Add(config); err != nil {
			return 0, err
		}
	}
	stop := inBackground(ctx, group.Run)
	pause(ctx, b.settle)
	before, began := sent.Counts(), time.Now()
	pause(ctx, b.rest)
	total := 0
	for _, n := range statements.Since(before, sent.Counts()) {
		total += n
	}
	perSecond = float64(total) / time.Since(began).Seconds()
	return perSecond, stop()
}
