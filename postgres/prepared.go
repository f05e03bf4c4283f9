package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// preparable is the statements of a connection. What a failover needs first is prepared
// when the connection opens, and the rest when it is first used.
type preparable struct {
	names    names
	texts    map[statement]string
	prepared map[statement]*pgconn.StatementDescription
}

// statementsKey is the key of a connection's statements in its custom data.
const statementsKey = "tenure statements"

// assign says which statements a connection may use.
func (n names) assign(conn *pgx.Conn, texts map[statement]string) {
	conn.PgConn().CustomData()[statementsKey] = &preparable{n, texts, map[statement]*pgconn.StatementDescription{}}
}

// statementsOf returns the statements of a connection, nil if none were assigned.
func statementsOf(conn *pgx.Conn) *preparable {
	s, _ := conn.PgConn().CustomData()[statementsKey].(*preparable)
	return s
}

// has reports whether a connection has a statement with this name.
func (s *preparable) has(name string) bool {
	return s != nil && s.texts[statement(name)] != ""
}

// first runs a statement that is not prepared yet, and prepares it, in one round trip. It
// returns false if it cannot: some parameters can be encoded only after their types are
// known.
func (s *preparable) first(conn *pgx.Conn, name statement, args []any) (rows pgx.Rows, done bool) {
	if new(pgx.ExtendedQueryBuilder).Build(conn.TypeMap(), nil, args) != nil {
		return nil, false
	}
	a := &ahead{Conn: conn}
	preparation := call{sql: s.names.sql(s.texts[name]), as: name}
	execution := call{sql: string(name), args: args}
	a.send(context.Background(), preparation, execution)
	prepared, _ := a.take(preparation)
	executed, _ := a.take(execution)
	return &storedRows{types: conn.TypeMap(), result: executed.result, err: cmp.Or(prepared.err, executed.err)}, true
}

// describe returns the description of a statement and prepares it first, if necessary.
func (s *preparable) describe(conn *pgx.Conn, name statement) (*pgconn.StatementDescription, error) {
	if known := s.prepared[name]; known != nil {
		return known, nil
	}
	description, err := conn.PgConn().Prepare(context.Background(), string(name), s.names.sql(s.texts[name]), nil)
	if err == nil {
		s.prepared[name] = description
	}
	return description, err
}

// run executes a statement.
func (s *preparable) run(conn *pgx.Conn, name statement, args []any) (pgx.Rows, error) {
	if s.prepared[name] == nil {
		if rows, done := s.first(conn, name, args); done {
			return rows, nil
		}
	}
	description, err := s.describe(conn, name)
	if err != nil {
		return nil, err
	}
	var parameters pgx.ExtendedQueryBuilder
	if err := parameters.Build(conn.TypeMap(), description, args); err != nil {
		return nil, err
	}
	return pgx.RowsFromResultReader(conn.TypeMap(), conn.PgConn().ExecStatement(context.Background(), description,
		parameters.ParamValues, parameters.ParamFormats, parameters.ResultFormats)), nil
}

// forEach runs a statement of the connection without a deadline.
func forEach(conn *pgx.Conn, name statement, scan func(pgx.Rows) error, args ...any) error {
	rows, err := statementsOf(conn).run(conn, name, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if scan == nil {
			continue
		}
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Parameters with which a statement does nothing.
const (
	none    = "{}"
	zero    = "0"
	no      = "false"
	yes     = "true"
	distant = "2000-01-01 00:00:00+00"
)

var nothing = uuid.Nil.String()

// sessionWarmUp and watchWarmUp are what the first failover sends. A connection prepares and
// executes them when it opens: the first execution costs several times a later one, because
// it plans, and reads the catalogs.
var (
	sessionWarmUp = []call{
		{sql: string(stmtTake), args: []any{none, none, none, none, none, none, nothing, "", zero, zero, "", "", no, no, no, none, none, nil}},
		{sql: string(stmtTake), args: []any{none, none, none, none, none, none, nothing, "", zero, zero, "", "", yes, no, no, none, none, nil}},
		{sql: string(stmtEnd), args: []any{none, none, none, none, none, nothing, none, none, none}},
		{sql: string(stmtResign), args: []any{none, none, none, none, none, nothing, none, none, none, "", none, none, none}},
	}
	watchWarmUp = []call{
		{sql: string(stmtDead), args: []any{zero, "", distant}},
	}
)

// preparations are the statements that prepare a connection for a failover.
func (n names) preparations(texts map[statement]string, warmUp []call) []call {
	var calls []call
	for i, c := range warmUp {
		if i == 0 || c.sql != warmUp[i-1].sql {
			calls = append(calls, call{sql: n.sql(texts[statement(c.sql)]), as: statement(c.sql)})
		}
		calls = append(calls, c)
	}
	return calls
}

// checkPreparations returns the first error of preparations.
func (a *ahead) checkPreparations(calls []call) error {
	for _, c := range calls {
		if done, _ := a.take(c); done.err != nil {
			if c.as != "" {
				return fmt.Errorf("prepare %s: %w", c.as, done.err)
			}
			return fmt.Errorf("try %s: %w", c.sql, done.err)
		}
	}
	return nil
}

// prepareWatch prepares a watch connection.
func (n names) prepareWatch(ctx context.Context, conn *pgx.Conn) error {
	n.assign(conn, watchStatements)
	a := &ahead{Conn: conn}
	calls := n.preparations(watchStatements, watchWarmUp)
	a.send(ctx, calls...)
	return a.checkPreparations(calls)
}

// noPairs is no keys of locks.
var noPairs = []int32{}
