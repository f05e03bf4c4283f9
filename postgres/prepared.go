package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/postgres/internal/link"
)

// Parameters with which a statement does nothing.
const (
	none    = "{}"
	zero    = "0"
	no      = "false"
	yes     = "true"
	distant = "2000-01-01 00:00:00+00"
)

var nothing = uuid.Nil.String()

// sessionWarmUp and watchWarmUp are the statements of the first failover. A connection
// prepares and executes them when it opens: the first execution costs several times a
// later one, because it plans, and reads the catalogs.
var (
	sessionWarmUp = []link.Call{
		{SQL: string(stmtTake), Args: []any{none, none, none, none, none, none, nothing, "", zero, zero, "", "", no, no, no, none, none, nil}},
		{SQL: string(stmtTake), Args: []any{none, none, none, none, none, none, nothing, "", zero, zero, "", "", yes, no, no, none, none, nil}},
		{SQL: string(stmtEnd), Args: []any{none, none, none, none, none, nothing, none, none, none}},
		{SQL: string(stmtResign), Args: []any{none, none, none, none, none, nothing, none, none, none, "", none, none, none}},
	}
	watchWarmUp = []link.Call{
		{SQL: string(stmtDead), Args: []any{zero, "", distant}},
	}
)

// prepareWatch prepares a watch connection.
func prepareWatch(ctx context.Context, n link.Names, conn *pgx.Conn) error {
	n.Assign(conn, watchStatements)
	a := &link.Ahead{Conn: conn}
	calls := n.Preparations(watchStatements, watchWarmUp)
	a.Send(ctx, calls...)
	return a.CheckPreparations(calls)
}

// noPairs is no keys of locks.
var noPairs = []int32{}
