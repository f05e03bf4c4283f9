package link

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Statement is a prepared statement; its name is a key of the tables of statements.
type Statement string

// preparable is the statements of a connection. The first statements of a failover are
// prepared when the connection opens, the others when first used.
type preparable struct {
	names    Names
	texts    map[Statement]string
	prepared map[Statement]*pgconn.StatementDescription
	tracer   pgx.QueryTracer // of the connection's owner, or nil
}

// statementsKey is the key of a connection's statements in its custom data.
const statementsKey = "tenure statements"

// Assign sets the statements of a connection.
func (n Names) Assign(conn *pgx.Conn, texts map[Statement]string) {
	conn.PgConn().CustomData()[statementsKey] = &preparable{n, texts, map[Statement]*pgconn.StatementDescription{}, conn.Config().Tracer}
}

// statementsOf returns the statements of a connection, nil if none were assigned.
func statementsOf(conn *pgx.Conn) *preparable {
	s, _ := conn.PgConn().CustomData()[statementsKey].(*preparable)
	return s
}

// has reports whether a connection has a statement with this name.
func (s *preparable) has(name string) bool {
	return s != nil && s.texts[Statement(name)] != ""
}

// first runs and prepares a new statement in one round trip. It returns false if it
// cannot: some parameters can be encoded only after their types are known.
func (s *preparable) first(conn *pgx.Conn, name Statement, args []any) (rows pgx.Rows, done bool) {
	if new(pgx.ExtendedQueryBuilder).Build(conn.TypeMap(), nil, args) != nil {
		return nil, false
	}
	a := &Ahead{Conn: conn}
	preparation := Call{SQL: s.names.SQL(s.texts[name]), as: name}
	execution := Call{SQL: string(name), Args: args}
	a.Send(context.Background(), preparation, execution)
	prepared, _ := a.take(preparation)
	executed, _ := a.take(execution)
	return &storedRows{types: conn.TypeMap(), result: executed.result, err: cmp.Or(prepared.err, executed.err)}, true
}

// describe returns the description of a statement and prepares it first, if necessary.
func (s *preparable) describe(conn *pgx.Conn, name Statement) (*pgconn.StatementDescription, error) {
	if known := s.prepared[name]; known != nil {
		return known, nil
	}
	description, err := conn.PgConn().Prepare(context.Background(), string(name), s.names.SQL(s.texts[name]), nil)
	if err == nil {
		s.prepared[name] = description
	}
	return description, err
}

// run executes a statement.
func (s *preparable) run(conn *pgx.Conn, name Statement, args []any) (pgx.Rows, error) {
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

// ForEach runs a statement of the connection without a deadline. The connection's tracer
// sees its name.
func ForEach(conn *pgx.Conn, name Statement, scan func(pgx.Rows) error, args ...any) (err error) {
	s := statementsOf(conn)
	if s.tracer != nil {
		traced := s.tracer.TraceQueryStart(context.Background(), conn, pgx.TraceQueryStartData{SQL: string(name), Args: args})
		defer func() { s.tracer.TraceQueryEnd(traced, conn, pgx.TraceQueryEndData{Err: err}) }()
	}
	rows, err := s.run(conn, name, args)
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

// Preparations prepare a connection for a failover.
func (n Names) Preparations(texts map[Statement]string, warmUp []Call) []Call {
	var calls []Call
	for i, c := range warmUp {
		if i == 0 || c.SQL != warmUp[i-1].SQL {
			calls = append(calls, Call{SQL: n.SQL(texts[Statement(c.SQL)]), as: Statement(c.SQL)})
		}
		calls = append(calls, c)
	}
	return calls
}

// CheckPreparations returns the first error of preparations.
func (a *Ahead) CheckPreparations(calls []Call) error {
	for _, c := range calls {
		if done, _ := a.take(c); done.err != nil {
			if c.as != "" {
				return fmt.Errorf("prepare %s: %w", c.as, done.err)
			}
			return fmt.Errorf("try %s: %w", c.SQL, done.err)
		}
	}
	return nil
}

// Texts reads a column of texts.
func Texts(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
