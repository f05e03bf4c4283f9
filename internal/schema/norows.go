package schema

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// noRows is the result of a statement on missing tables.
type noRows struct{ err error }

var _ pgx.Rows = noRows{}

func (noRows) Close()                                       {}
func (r noRows) Err() error                                 { return r.err }
func (noRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (noRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (noRows) Next() bool                                   { return false }
func (r noRows) Scan(...any) error                          { return pgx.ErrNoRows }
func (noRows) Values() ([]any, error)                       { return nil, pgx.ErrNoRows }
func (noRows) RawValues() [][]byte                          { return nil }
func (noRows) Conn() *pgx.Conn                              { return nil }
func (noRows) TypeMap() *pgtype.Map                         { return nil }
