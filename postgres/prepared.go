package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// preparable is the statements of a connection. What a failover needs is prepared when the
// connection opens, and the rest when it is first used.
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

// forEach runs a statement of the connection without a deadline.
func forEach(conn *pgx.Conn, name statement, scan func(pgx.Rows) error, args ...any) error {
	description, err := statementsOf(conn).describe(conn, name)
	if err != nil {
		return err
	}
	var parameters pgx.ExtendedQueryBuilder
	if err := parameters.Build(conn.TypeMap(), description, args); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	rows := pgx.RowsFromResultReader(conn.TypeMap(), conn.PgConn().ExecStatement(context.Background(), description,
		parameters.ParamValues, parameters.ParamFormats, parameters.ResultFormats))
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

// sessionFailover and watchFailover are prepared when a connection opens, and
// sessionWarmUp and watchWarmUp are executed, in the order of a failover. The first
// execution on a connection costs several times a later one: it plans, and reads the
// catalogs.
var (
	sessionFailover = []statement{
		stmtTake, stmtRoleKeys, stmtAddRoles, stmtClose, stmtReunion, stmtEnd, stmtResign, stmtUnlock, stmtUnlockPairs, stmtHeartbeat, stmtRequests,
	}
	sessionWarmUp = []call{
		{sql: string(stmtTake), args: []any{none, none, none, none, none, none, nothing, "", zero, zero, "", "", no, no, no, none, none, nil}},
		{sql: string(stmtClose), args: []any{none, none, "", "", none, none}},
		{sql: string(stmtReunion), args: []any{"", ""}},
		{sql: string(stmtTake), args: []any{none, none, none, none, none, none, nothing, "", zero, zero, "", "", yes, no, no, none, none, nil}},
		{sql: string(stmtEnd), args: []any{none, none, none, none, none, nothing, none}},
		{sql: string(stmtResign), args: []any{none, none, none, none, none, nothing, none, none, none, "", none}},
	}
	watchFailover = []statement{stmtWatch, stmtDead, stmtNext}
	watchWarmUp   = []call{
		{sql: string(stmtDead), args: []any{zero, "", distant}},
	}
)

// preparations are the statements that prepare a connection for a failover.
func (n names) preparations(texts map[statement]string, prepared []statement, warmUp []call) []call {
	calls := make([]call, 0, len(prepared)+len(warmUp))
	for _, name := range prepared {
		calls = append(calls, call{sql: n.sql(texts[name]), as: name})
	}
	return append(calls, warmUp...)
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
	calls := n.preparations(watchStatements, watchFailover, watchWarmUp)
	a.send(ctx, calls...)
	return a.checkPreparations(calls)
}

// noPairs is no keys of locks.
var noPairs = []int32{}
