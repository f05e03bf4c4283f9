package link

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/exactly-one/tenure/internal/pgdial"
)

// Querier is a connection or a transaction for reads.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Executor is a connection or a transaction for writes.
type Executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Connection is a connection with or without statements sent ahead.
type Connection interface {
	Querier
	Executor
	PgConn() *pgconn.PgConn
	Config() *pgx.ConnConfig
}

// Ahead is a connection for an opening. It sends many statements in one round trip,
// before the opening needs their results. Each statement is a transaction. Query,
// QueryRow and Exec return the result of such a statement once, and send any other
// statement. So the steps of an opening read as if each waited for its answer, and return
// the same errors.
type Ahead struct {
	*pgx.Conn
	Answered func() // called after each answer to a statement sent ahead; may be nil
	answers  []answer
}

// Call is a statement to send ahead.
type Call struct {
	SQL  string
	Args []any
	as   Statement // the name to prepare it under; it is executed if this is empty
}

type answer struct {
	Call
	result *pgconn.Result
	err    error
}

// Send sends statements and receives their results. An error of the connection is the
// error of all statements without an answer.
func (a *Ahead) Send(ctx context.Context, calls ...Call) {
	pipeline := a.PgConn().StartPipeline(ctx)
	answers := make([]answer, len(calls))
	for i, c := range calls {
		answers[i] = answer{Call: c, err: a.add(pipeline, c)}
	}
	_ = pipeline.Flush() // the next call returns the same error
	for i := range answers {
		if answers[i].err == nil {
			answers[i].result, answers[i].err = receive(pipeline, a.Conn, answers[i].Call)
			if a.Answered != nil && answers[i].err == nil {
				a.Answered()
			}
		}
	}
	_ = pipeline.Close() // as above
	if a.IsClosed() {
		Discard(a.Conn) // the driver could still receive an endless answer
	}
	a.answers = append(a.answers, answers...)
}

// add adds a statement, and a Sync to end its transaction.
func (a *Ahead) add(pipeline *pgconn.Pipeline, c Call) error {
	var parameters pgx.ExtendedQueryBuilder
	if err := parameters.Build(a.TypeMap(), nil, c.Args); err != nil {
		return err
	}
	switch {
	case c.as != "":
		pipeline.SendPrepare(string(c.as), c.SQL, nil)
	case statementsOf(a.Conn).has(c.SQL):
		pipeline.SendQueryPrepared(c.SQL, parameters.ParamValues, parameters.ParamFormats, nil)
	default:
		pipeline.SendQueryParams(c.SQL, parameters.ParamValues, nil, parameters.ParamFormats, nil)
	}
	pipeline.SendPipelineSync()
	return nil
}

// receive receives the result of one statement and the end of its transaction.
func receive(pipeline *pgconn.Pipeline, conn *pgx.Conn, c Call) (*pgconn.Result, error) {
	var result *pgconn.Result
	got, err := pipeline.GetResults()
	switch got := got.(type) {
	case *pgconn.ResultReader:
		result = got.Read()
		err = result.Err
	case *pgconn.StatementDescription:
		got.Name, got.SQL = string(c.as), c.SQL
		statementsOf(conn).prepared[c.as] = got
	}
	for range mostAfterAnswer {
		got, syncErr := pipeline.GetResults()
		if _, synced := got.(*pgconn.PipelineSync); synced {
			return result, err
		}
		if err == nil { // of the commit
			err = syncErr
		}
		if conn.IsClosed() || got == nil && syncErr == nil {
			return result, err
		}
	}
	// Later answers would be attributed to the wrong statements.
	Discard(conn)
	return nil, cmp.Or(err, errTooManyAnswers)
}

// mostAfterAnswer bounds the messages of a server between an answer and the end of its
// transaction: an error of the commit, and the end.
const mostAfterAnswer = 3

var errTooManyAnswers = errors.New("the server answered one statement several times")

// Forget forgets the remaining answers: something has changed since.
func (a *Ahead) Forget() { a.answers = nil }

// take removes the answer to a statement.
func (a *Ahead) take(c Call) (answer, bool) {
	at := slices.IndexFunc(a.answers, func(r answer) bool {
		return r.SQL == c.SQL && r.as == c.as && (len(c.Args) == 0 && len(r.Args) == 0 || reflect.DeepEqual(r.Args, c.Args))
	})
	if at < 0 {
		return answer{}, false
	}
	found := a.answers[at]
	a.answers = slices.Delete(a.answers, at, at+1)
	return found, true
}

// Query returns the rows of a statement. They may have arrived already.
func (a *Ahead) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if r, found := a.take(Call{SQL: sql, Args: args}); found {
		return &storedRows{types: a.TypeMap(), result: r.result, err: r.err}, nil
	}
	return a.Conn.Query(ctx, sql, args...)
}

// QueryRow returns the first row of a statement. It may have arrived already.
func (a *Ahead) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if r, found := a.take(Call{SQL: sql, Args: args}); found {
		return storedRow{&storedRows{types: a.TypeMap(), result: r.result, err: r.err}}
	}
	return a.Conn.QueryRow(ctx, sql, args...)
}

// Exec runs a statement, unless its result has arrived.
func (a *Ahead) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if r, found := a.take(Call{SQL: sql, Args: args}); found {
		if r.err != nil {
			return pgconn.CommandTag{}, r.err
		}
		return r.result.CommandTag, nil
	}
	return a.Conn.Exec(ctx, sql, args...)
}

// Apply makes the settings of a use.
func (a *Ahead) Apply(ctx context.Context, use pgdial.Use, limits pgdial.Limits) error {
	c := ApplyCall(use, limits)
	_, err := a.Exec(ctx, c.SQL, c.Args...)
	return pgdial.ExplainSettings(ctx, a.Conn, err)
}

// ApplyCall is the statement of apply.
func ApplyCall(use pgdial.Use, limits pgdial.Limits) Call {
	sql, names, values := pgdial.Settings(use, limits)
	return Call{SQL: sql, Args: []any{names, values}}
}

// storedRows are already received rows.
type storedRows struct {
	types  *pgtype.Map
	result *pgconn.Result
	err    error
	next   int
}

func (r *storedRows) Close()     { r.next = len(r.rows()) + 1 }
func (r *storedRows) Err() error { return r.err }

func (r *storedRows) rows() [][][]byte {
	if r.err != nil || r.result == nil {
		return nil
	}
	return r.result.Rows
}

func (r *storedRows) CommandTag() pgconn.CommandTag {
	if r.result == nil {
		return pgconn.CommandTag{}
	}
	return r.result.CommandTag
}

func (r *storedRows) FieldDescriptions() []pgconn.FieldDescription {
	if r.result == nil {
		return nil
	}
	return r.result.FieldDescriptions
}

func (r *storedRows) Next() bool {
	r.next++
	return r.next <= len(r.rows())
}

func (r *storedRows) Scan(targets ...any) error {
	return pgx.ScanRow(r.types, r.FieldDescriptions(), r.RawValues(), targets...)
}

func (r *storedRows) RawValues() [][]byte    { return r.rows()[r.next-1] }
func (r *storedRows) Values() ([]any, error) { return nil, errors.ErrUnsupported }
func (r *storedRows) Conn() *pgx.Conn        { return nil }
func (r *storedRows) TypeMap() *pgtype.Map   { return r.types }

// storedRow is the first of stored rows.
type storedRow struct{ rows *storedRows }

func (r storedRow) Scan(targets ...any) error {
	switch {
	case r.rows.err != nil:
		return r.rows.err
	case !r.rows.Next():
		return pgx.ErrNoRows
	}
	return r.rows.Scan(targets...)
}
