package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/history"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// A node that leads again can fence with its current term only.
func TestFenceRejectsEarlierTermOfSameNode(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	db, err := sql.Open("pgx", b.connect.Config.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := open(t, b)
	p.take("scheduler")
	earlier := p.mark("scheduler")
	p.release("scheduler", history.EndResigned)
	p.take("scheduler")
	if err := p.write(pool, pgx.TxOptions{}, p.mark("scheduler"), nil); err != nil {
		t.Errorf("the present term: %v", err)
	}
	ctx := context.Background()
	for name, err := range map[string]error{
		"InTx":    p.write(pool, pgx.TxOptions{}, earlier, nil),
		"InSQLTx": b.inSQLTx(ctx, db, nil, earlier, func(*sql.Tx) error { return nil }),
	} {
		if !errors.Is(err, tenure.ErrFenced) {
			t.Errorf("Invariant 3: %s with an earlier term of the node: %v; want it fenced", name, err)
		}
	}
	if n := row[int](t, b, "SELECT count(*) FROM {schema}.work"); n != 1 {
		t.Errorf("Invariant 3: %d transactions were committed, want that of the present term alone", n)
	}
}

// A term that has ended is refused also if the transaction is fenced with the current term
// of the same role too.
func TestFenceRejectsEndedTermBesideCurrentOne(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	pool := work(t, b)
	db, err := sql.Open("pgx", b.connect.Config.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := termOfNode(ctx, t, b)
	if err := ended.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	current := termOfNode(ctx, t, b)
	defer func() { _ = current.Resign(ctx) }()
	fence := func(terms ...*tenure.Term) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(ctx)
		return Fence(ctx, tx, terms...)
	}
	fenceSQL := func(terms ...*tenure.Term) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		return FenceSQL(ctx, tx, terms...)
	}
	for name, fence := range map[string]func(...*tenure.Term) error{"Fence": fence, "FenceSQL": fenceSQL} {
		if err := fence(current, current); err != nil {
			t.Errorf("%s with the current term twice: %v", name, err)
		}
		for _, terms := range [][]*tenure.Term{{ended, current}, {current, ended}} {
			if err := fence(terms...); !errors.Is(err, tenure.ErrFenced) {
				t.Errorf("Invariant 3: %s with terms %d and %d, of which %d has ended: %v; want it fenced",
					name, terms[0].Number(), terms[1].Number(), ended.Number(), err)
			}
		}
	}
}

// The fence reads the terms of its installation, whatever schema the program
// searches first.
func TestFenceReadsItsOwnSchema(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	marks, decoy := p.mark("scheduler"), server.Schema(t)
	quoted := pgx.Identifier{decoy}.Sanitize()
	exec(t, b, "CREATE SCHEMA "+quoted)
	exec(t, b, "CREATE TABLE "+quoted+"."+pgx.Identifier{DefaultPrefix + "terms"}.Sanitize()+" AS SELECT * FROM {terms}")
	p.release("scheduler", history.EndResigned)

	ctx := context.Background()
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	if _, err := conn.Exec(ctx, "SELECT set_config('search_path', $1, false)", decoy); err != nil {
		t.Fatal(err)
	}
	err := b.inTx(ctx, conn, pgx.TxOptions{}, marks, func(pgx.Tx) error { return nil })
	if !errors.Is(err, tenure.ErrFenced) {
		t.Errorf("Invariant 3: a term that is open in another schema alone: %v; want it fenced", err)
	}
}
