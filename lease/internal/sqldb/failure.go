package sqldb

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
	"github.com/exactly-one/tenure/dberr"
)

// Failure classifies database errors by their meaning for an election.
type Failure uint8

// The failures.
const (
	FailureOther Failure = iota
	FailureConflict
	FailureConnection
	FailureBusy
	FailureReadOnly
	FailureDiskFull
	FailureSchema
	FailurePrivilege
	FailurePrepared
	FailureSettings
	FailureJoinSize
)

// sqlStates lists PostgreSQL's codes; see appendix A of its manual.
var sqlStates = map[string]Failure{
	"40001": FailureConflict, // serialization_failure
	"40P01": FailureConflict, // deadlock_detected
	"55P03": FailureBusy,     // lock_not_available
	"57014": FailureBusy,     // query_canceled, by the statement timeout
	"25P03": FailureBusy,     // idle_in_transaction_session_timeout
	"25006": FailureReadOnly, // read_only_sql_transaction
	"53100": FailureDiskFull,
	"42P01": FailureSchema, // undefined_table
	"42703": FailureSchema, // undefined_column
	"3F000": FailureSchema, // invalid_schema_name
	"42501": FailurePrivilege,
	"26000": FailurePrepared, // invalid_sql_statement_name
	"42P05": FailurePrepared, // duplicate_prepared_statement
	"08000": FailureConnection,
	"08001": FailureConnection,
	"08003": FailureConnection,
	"08004": FailureConnection,
	"08006": FailureConnection,
	"28000": FailureConnection, // invalid_authorization_specification
	"28P01": FailureConnection, // invalid_password
	"08P01": FailureConnection, // PgBouncer returns it for every problem with its server
	"53300": FailureConnection, // too_many_connections
	"57P01": FailureConnection,
	"57P02": FailureConnection,
	"57P03": FailureConnection,
	"57P05": FailureConnection, // idle_session_timeout
}

// mysqlErrors lists the error numbers of MySQL and MariaDB.
var mysqlErrors = map[int]Failure{
	1213: FailureConflict, // ER_LOCK_DEADLOCK
	1020: FailureConflict, // ER_CHECKREAD: the row has changed since the snapshot
	1205: FailureBusy,     // ER_LOCK_WAIT_TIMEOUT
	3572: FailureBusy,     // ER_LOCK_NOWAIT
	1290: FailureReadOnly, // ER_OPTION_PREVENTS_STATEMENT: --read-only
	1792: FailureReadOnly, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	1836: FailureReadOnly, // ER_READ_ONLY_MODE
	1665: FailureSettings, // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE
	1104: FailureJoinSize, // ER_TOO_BIG_SELECT
	1021: FailureDiskFull, // ER_DISK_FULL
	1026: FailureDiskFull, // ER_ERROR_ON_WRITE
	1114: FailureDiskFull, // ER_RECORD_FILE_FULL
	1046: FailureSchema,   // ER_NO_DB_ERROR: the connection's database was removed
	1146: FailureSchema,   // ER_NO_SUCH_TABLE
	1054: FailureSchema,   // ER_BAD_FIELD_ERROR
	1044: FailurePrivilege,
	1142: FailurePrivilege,
	1143: FailurePrivilege,
	1227: FailurePrivilege,
	1040: FailureConnection, // ER_CON_COUNT_ERROR
	1045: FailureConnection, // ER_ACCESS_DENIED_ERROR: a wrong user or password
	1698: FailureConnection, // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
	1047: FailureConnection, // ER_UNKNOWN_COM_ERROR: the server has left its Galera cluster
	1053: FailureConnection, // ER_SERVER_SHUTDOWN
	1317: FailureConnection, // ER_QUERY_INTERRUPTED
	1927: FailureConnection, // ER_CONNECTION_KILLED
}

// sqliteErrors lists primary result codes of SQLite.
var sqliteErrors = map[int]Failure{
	5:  FailureBusy,     // SQLITE_BUSY
	6:  FailureBusy,     // SQLITE_LOCKED
	8:  FailureReadOnly, // SQLITE_READONLY
	9:  FailureConnection,
	13: FailureDiskFull, // SQLITE_FULL
	14: FailureConnection,
}

// MixedBinlog makes a server of MySQL or MariaDB accept transactions at READ COMMITTED.
const MixedBinlog = "SET GLOBAL binlog_format = 'MIXED'"

// FailureOf classifies an error of a driver. The program chooses the driver, so the
// error is recognized by its shape, not by its type.
func (d Dialect) FailureOf(err error) Failure {
	for _, gone := range []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, gone) {
			return FailureConnection
		}
	}
	if d == SQLite { // has no network, even if its errors look like network errors
		return sqliteFailure(err)
	}
	var network net.Error
	if errors.As(err, &network) {
		return FailureConnection
	}
	switch d {
	case PostgreSQL:
		var state interface{ SQLState() string }
		if errors.As(err, &state) {
			return sqlStates[state.SQLState()]
		}
	case MySQL:
		if strings.Contains(err.Error(), "invalid connection") { // the driver's text for a broken connection
			return FailureConnection
		}
		if strings.Contains(err.Error(), "NO_ENGINE_SUBSTITUTION") {
			return FailureOther // has the number of a read-only server
		}
		return mysqlErrors[field(err, "Number")]
	}
	return FailureOther
}

func sqliteFailure(err error) Failure {
	code := sqliteCode(err)
	// SQLITE_ERROR is the code for every fault of a statement.
	if code == 1 && strings.Contains(err.Error(), "no such ") {
		return FailureSchema
	}
	return sqliteErrors[code]
}

// sqliteCode returns the primary result code of a SQLite error, or 0. Some drivers
// keep it in a field, others return it from a method, as their own type.
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

// field returns an integer field of the first error in the chain with this field, or 0.
// The errors of go-sql-driver/mysql and mattn/go-sqlite3 have such fields.
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

// integer returns the value of any integer type, or 0.
func integer(value reflect.Value) int {
	switch {
	case value.CanInt():
		return int(value.Int())
	case value.CanUint():
		return int(value.Uint())
	}
	return 0
}

// Explain wraps a driver's error with the attempted operation, and with the matching error
// of package tenure, if any. It returns tenure's own errors unchanged.
func (d Dialect) Explain(doing string, err error) error {
	if err == nil || errors.Is(err, tenure.ErrTenure) {
		return err
	}
	if d == PostgreSQL && strings.Contains(err.Error(), "statement pooling") {
		return fmt.Errorf("%s: %w: %w: a pooler in statement mode has no transactions: set pool_mode to transaction or session",
			doing, dberr.ErrPooled, err)
	}
	switch d.FailureOf(err) {
	case FailureConnection:
		return fmt.Errorf("%s: %w: %w", doing, tenure.ErrConnection, err)
	case FailureBusy, FailureConflict:
		return fmt.Errorf("%s: %w: %w", doing, dberr.ErrBusy, err)
	case FailureReadOnly:
		return fmt.Errorf("%s: %w: %w", doing, dberr.ErrReadOnly, err)
	case FailureDiskFull:
		return fmt.Errorf("%s: %w: %w", doing, dberr.ErrDiskFull, err)
	case FailureSchema:
		return fmt.Errorf("%s: %w: %w: call Migrate to create the tables", doing, dberr.ErrSchema, err)
	case FailurePrivilege:
		return fmt.Errorf("%s: %w: %w", doing, dberr.ErrPrivilege, err)
	case FailureSettings:
		return fmt.Errorf("%s: %w: %w: %s, and connect again", doing, tenure.ErrRefused, err, MixedBinlog)
	case FailurePrepared:
		return fmt.Errorf("%s: %w: %w: a pooler in transaction mode loses prepared statements: with pgx set default_query_exec_mode=exec",
			doing, dberr.ErrPooled, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
