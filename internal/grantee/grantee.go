// Package grantee names the user of a connection in statements that grant.
package grantee

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Of returns the quoted user of a connection, a transaction or a pool, for statements that
// an operator runs: as the server reports it, or else as it was configured.
func Of(on any) string {
	const unknown = "this user"
	reported, configured := "", ""
	if tx, ok := on.(interface{ Conn() *pgx.Conn }); ok {
		on = tx.Conn()
	}
	if conn, ok := on.(interface{ PgConn() *pgconn.PgConn }); ok {
		reported = conn.PgConn().ParameterStatus("session_authorization")
	}
	switch conn := on.(type) {
	case *pgconn.PgConn:
		reported = conn.ParameterStatus("session_authorization")
	case interface{ Config() *pgx.ConnConfig }:
		configured = conn.Config().User
	case *pgxpool.Pool:
		configured = conn.Config().ConnConfig.User
	}
	for _, user := range []string{reported, configured} {
		if user != "" {
			return pgx.Identifier{user}.Sanitize()
		}
	}
	return unknown
}
