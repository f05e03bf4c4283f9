package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"

	"github.com/exactly-one/tenure"
)

// failure is what an error of a database means to an election.
type failure uint8

const (
	failureOther failure = iota
	failureConflict
	failureConnection
	failureBusy
	failureReadOnly
	failureDiskFull
	failureSchema
	failurePrivilege
	failurePrepared
)

// sqlStates are the codes of PostgreSQL, see appendix A of its manual.
var sqlStates = map[string]failure{
	"40001": failureConflict, // serialization_failure
	"40P01": failureConflict, // deadlock_detected
	"55P03": failureBusy,     // lock_not_available
	"57014": failureBusy,     // query_canceled, by the statement timeout
	"25P03": failureBusy,     // idle_in_transaction_session_timeout
	"25006": failureReadOnly, // read_only_sql_transaction
	"53100": failureDiskFull,
	"42P01": failureSchema, // undefined_table
	"42703": failureSchema, // undefined_column
	"3F000": failureSchema, // invalid_schema_name
	"42501": failurePrivilege,
	"26000": failurePrepared, // invalid_sql_statement_name
	"42P05": failurePrepared, // duplicate_prepared_statement
	"08000": failureConnection,
	"08001": failureConnection,
	"08003": failureConnection,
	"08004": failureConnection,
	"08006": failureConnection,
	"08P01": failureConnection, // of PgBouncer, whatever has become of its server
	"53300": failureConnection, // too_many_connections
	"57P01": failureConnection,
	"57P02": failureConnection,
	"57P03": failureConnection,
	"57P05": failureConnection, // idle_session_timeout
}

// mysqlErrors are the numbers of MySQL and MariaDB.
var mysqlErrors = map[int]failure{
	1213: failureConflict, // ER_LOCK_DEADLOCK
	1020: failureConflict, // ER_CHECKREAD: the row is not that of the snapshot
	1205: failureBusy,     // ER_LOCK_WAIT_TIMEOUT
	3572: failureBusy,     // ER_LOCK_NOWAIT
	1290: failureReadOnly, // ER_OPTION_PREVENTS_STATEMENT: --read-only
	1792: failureReadOnly, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	1836: failureReadOnly, // ER_READ_ONLY_MODE
	1021: failureDiskFull, // ER_DISK_FULL
	1026: failureDiskFull, // ER_ERROR_ON_WRITE
	1114: failureDiskFull, // ER_RECORD_FILE_FULL
	1146: failureSchema,   // ER_NO_SUCH_TABLE
	1054: failureSchema,   // ER_BAD_FIELD_ERROR
	1044: failurePrivilege,
	1045: failurePrivilege,
	1142: failurePrivilege,
	1143: failurePrivilege,
	1227: failurePrivilege,
	1040: failureConnection, // ER_CON_COUNT_ERROR
	1047: failureConnection, // ER_UNKNOWN_COM_ERROR: of a server that left the others of Galera
	1053: failureConnection, // ER_SERVER_SHUTDOWN
	1317: failureConnection, // ER_QUERY_INTERRUPTED
	1927: failureConnection, // ER_CONNECTION_KILLED
}

// sqliteErrors are the primary result codes of SQLite.
var sqliteErrors = map[int]failure{
	5:  failureBusy,     // SQLITE_BUSY
	6:  failureBusy,     // SQLITE_LOCKED
	8:  failureReadOnly, // SQLITE_READONLY
	9:  failureConnection,
	13: failureDiskFull, // SQLITE_FULL
	14: failureConnection,
}

// failureOf tells what an error of a driver means. The drivers are the program's
// choice, so their errors are known by their shape only.
func (d Dialect) failureOf(err error) failure {
	for _, gone := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, gone) {
			return failureConnection
		}
	}
	if d == SQLite { // has no network, whatever its errors look like
		return sqliteFailure(err)
	}
	var network net.Error
	if errors.As(err, &network) {
		return failureConnection
	}
	switch d {
	case PostgreSQL:
		var state interface{ SQLState() string }
		if errors.As(err, &state) {
			return sqlStates[state.SQLState()]
		}
	case MySQL:
		if strings.Contains(err.Error(), "invalid connection") { // as its driver calls a broken one
			return failureConnection
		}
		return mysqlErrors[field(err, "Number")]
	}
	return failureOther
}

func sqliteFailure(err error) failure {
	code := sqliteCode(err)
	// The one code for all that is wrong with a statement.
	if code == 1 && strings.Contains(err.Error(), "no such ") {
		return failureSchema
	}
	return sqliteErrors[code]
}

// sqliteCode returns the primary result code of an error of SQLite, or 0. Some
// drivers have it in a field, others return it from a method, as types of theirs.
func sqliteCode(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	code := field(err, "Code")
	for ; err != nil && code == 0; err = errors.Unwrap(err) {
		method := reflect.ValueOf(err).MethodByName("Code")
		if method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
			code = integer(method.Call(nil)[0])
		}
	}
	return code & 0xff
}

// field returns an integer field of the first error in the chain that has it:
// go-sql-driver/mysql and mattn/go-sqlite3 keep their codes so.
func field(err error, name string) int {
	for ; err != nil; err = errors.Unwrap(err) {
		value := reflect.Indirect(reflect.ValueOf(err))
		if value.Kind() != reflect.Struct {
			continue
		}
		if code := value.FieldByName(name); code.IsValid() && (code.CanInt() || code.CanUint()) {
			return integer(code)
		}
	}
	return 0
}

// integer returns a value of whatever type of integers, or 0.
func integer(value reflect.Value) int {
	switch {
	case value.CanInt():
		return int(value.Int())
	case value.CanUint():
		return int(value.Uint())
	}
	return 0
}

// explain says what was being done, and makes an error of a driver one that
// callers can tell apart.
func (d Dialect) explain(doing string, err error) error {
	if err == nil || errors.Is(err, tenure.ErrTenure) {
		return err
	}
	if d == PostgreSQL && strings.Contains(err.Error(), "statement pooling") {
		return fmt.Errorf("%s: %w: %w; a pooler in statement mode has no transactions: set pool_mode to transaction or session",
			doing, tenure.ErrPooled, err)
	}
	switch d.failureOf(err) {
	case failureConnection:
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrConnection, err)
	case failureBusy, failureConflict:
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrBusy, err)
	case failureReadOnly:
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrReadOnly, err)
	case failureDiskFull:
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrDiskFull, err)
	case failureSchema:
		return fmt.Errorf("%s: %w: %w; Migrate creates the tables", doing, tenure.ErrSchema, err)
	case failurePrivilege:
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrPrivilege, err)
	case failurePrepared:
		return fmt.Errorf("%s: %w: %w; a pooler in transaction mode loses prepared statements: with pgx set default_query_exec_mode=exec",
			doing, tenure.ErrPooled, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
