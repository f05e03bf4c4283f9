package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
)

// Errors in the shapes in which drivers return them.
type (
	stateError  struct{ state string }   // pgx, lib/pq
	codeError   struct{ code int }       // modernc.org/sqlite
	fieldError  struct{ Code int32 }     // mattn/go-sqlite3
	typedError  struct{ code typedCode } // ncruces/go-sqlite3
	typedCode   uint8
	numberError struct{ Number uint16 }
)

func (e stateError) Error() string    { return "SQLSTATE " + e.state }
func (e stateError) SQLState() string { return e.state }
func (e codeError) Error() string     { return fmt.Sprintf("code %d", e.code) }
func (e codeError) Code() int         { return e.code }
func (e fieldError) Error() string    { return fmt.Sprintf("code %d", e.Code) }
func (e *typedError) Error() string   { return fmt.Sprintf("code %d", e.code) }
func (e *typedError) Code() typedCode { return e.code }
func (e *typedError) Timeout() bool   { return false } // so it looks like an error of a network
func (e *typedError) Temporary() bool { return e.code == 5 }
func (e *numberError) Error() string  { return fmt.Sprintf("error %d", e.Number) } // go-sql-driver/mysql

func TestExplainNamesTheCause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialect Dialect
		err     error
		want    error // nil if it is none of tenure's
	}{
		{PostgreSQL, stateError{"40001"}, dberr.ErrBusy},
		{PostgreSQL, stateError{"40P01"}, dberr.ErrBusy},
		{PostgreSQL, stateError{"55P03"}, dberr.ErrBusy},
		{PostgreSQL, stateError{"25006"}, dberr.ErrReadOnly},
		{PostgreSQL, stateError{"53100"}, dberr.ErrDiskFull},
		{PostgreSQL, stateError{"42P01"}, dberr.ErrSchema},
		{PostgreSQL, stateError{"42501"}, dberr.ErrPrivilege},
		{PostgreSQL, stateError{"26000"}, dberr.ErrPooled},
		{PostgreSQL, stateError{"57P01"}, tenure.ErrConnection},
		{PostgreSQL, stateError{"22012"}, nil},
		{SQLite, codeError{5}, dberr.ErrBusy},
		{SQLite, codeError{5 | 2<<8}, dberr.ErrBusy}, // SQLITE_BUSY_SNAPSHOT
		{SQLite, codeError{8}, dberr.ErrReadOnly},
		{SQLite, codeError{13}, dberr.ErrDiskFull},
		{SQLite, codeError{1}, nil},
		{SQLite, fieldError{5}, dberr.ErrBusy},
		{SQLite, &typedError{5}, dberr.ErrBusy},
		{SQLite, &typedError{1}, nil},
		{MySQL, &numberError{1213}, dberr.ErrBusy},
		{MySQL, &numberError{1205}, dberr.ErrBusy},
		{MySQL, &numberError{1290}, dberr.ErrReadOnly},
		{MySQL, &numberError{1021}, dberr.ErrDiskFull},
		{MySQL, &numberError{1146}, dberr.ErrSchema},
		{MySQL, &numberError{1142}, dberr.ErrPrivilege},
		{MySQL, &numberError{1045}, tenure.ErrConnection},
		{PostgreSQL, stateError{"28P01"}, tenure.ErrConnection},
		{MySQL, &numberError{1665}, tenure.ErrRefused},
		{MySQL, &numberError{1064}, nil},
		{MySQL, stateError{"40001"}, nil}, // another database's
		{PostgreSQL, driver.ErrBadConn, tenure.ErrConnection},
		{SQLite, context.DeadlineExceeded, tenure.ErrConnection},
		{MySQL, io.ErrUnexpectedEOF, tenure.ErrConnection},
		{MySQL, &net.OpError{Op: "read", Err: errors.New("reset")}, tenure.ErrConnection},
	} {
		for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
			got := test.dialect.Explain("elect", err)
			if !errors.Is(got, test.err) {
				t.Errorf("%v, %v: the error is lost in %v", test.dialect, err, got)
			}
			if test.want == nil && errors.Is(got, tenure.ErrTenure) || test.want != nil && !errors.Is(got, test.want) {
				t.Errorf("%v, %v: got %v, want %v", test.dialect, err, got, test.want)
			}
		}
	}
	if err := PostgreSQL.Explain("elect", nil); err != nil {
		t.Errorf("no error has become %v", err)
	}
	if err := PostgreSQL.Explain("elect", tenure.ErrFenced); err != tenure.ErrFenced { //nolint:errorlint // it must stay the very same
		t.Errorf("an error that says enough has become %v", err)
	}
}
