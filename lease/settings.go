package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// badSetting is an unusable setting of the server, or of the connection. Its error matches
// tenure.ErrRefused: no retry helps.
type badSetting struct {
	name, value string
	effect      string
	remedy      string
}

func (s badSetting) Error() string {
	return fmt.Sprintf("%v: %s: %s", tenure.ErrRefused, s.detail(), s.remedy)
}

func (s badSetting) Unwrap() error { return tenure.ErrRefused }

func (s badSetting) detail() string {
	return fmt.Sprintf("%s is %s: %s", s.name, s.value, s.effect)
}

// mysqlSettings lists settings of MySQL and MariaDB. A server without a setting does not
// have its fault.
var mysqlSettings = []struct {
	name   string
	bad    func(value string, all map[string]string) bool
	effect string
	remedy string
}{
	{
		"binlog_format",
		func(value string, all map[string]string) bool {
			return strings.EqualFold(value, "STATEMENT") && on(all["log_bin"]) && on(all["sql_log_bin"])
		},
		"the server refuses all transactions of leases (error 1665), whose isolation level is READ COMMITTED",
		sqldb.MixedBinlog,
	},
	{
		"completion_type", equal("CHAIN"),
		"a commit begins another transaction, in which the next heartbeat stays uncommitted",
		"SET GLOBAL completion_type = 'NO_CHAIN'",
	},
	{
		"autocommit", equal("OFF"),
		"heartbeats stay uncommitted",
		"SET GLOBAL autocommit = 1",
	},
	{"tx_read_only", equal("ON"), "transactions cannot write", "SET GLOBAL tx_read_only = 0"},
	{"transaction_read_only", equal("ON"), "transactions cannot write", "SET GLOBAL transaction_read_only = 0"},
	{
		"sql_safe_updates", equal("ON"),
		"the server refuses updates of several rows",
		"SET GLOBAL sql_safe_updates = 0",
	},
	{
		"sql_mode",
		func(value string, _ map[string]string) bool {
			return slices.Contains(strings.Split(value, ","), "EMPTY_STRING_IS_NULL")
		},
		"the server replaces empty values by NULL",
		"SET GLOBAL sql_mode = REPLACE(@@GLOBAL.sql_mode, 'EMPTY_STRING_IS_NULL', '')",
	},
	{
		"sql_select_limit",
		func(value string, _ map[string]string) bool {
			limit, err := strconv.ParseUint(value, 10, 64)
			return err != nil || limit < 1<<32-1
		},
		"the server leaves rows out of its answers",
		"SET GLOBAL sql_select_limit = DEFAULT",
	},
	{
		"max_join_size", equal("too low"),
		"the server refuses to read its tables (error 1104)",
		"SET GLOBAL max_join_size = DEFAULT",
	},
	{
		"enforce_storage_engine",
		func(value string, _ map[string]string) bool {
			return value != "" && !strings.EqualFold(value, "InnoDB")
		},
		"the server creates tables without transactions, or none",
		"SET GLOBAL enforce_storage_engine = NULL",
	},
}

func on(value string) bool { return strings.EqualFold(value, "ON") || value == "1" }

func equal(bad string) func(string, map[string]string) bool {
	return func(value string, _ map[string]string) bool { return strings.EqualFold(value, bad) }
}

// readBadSettings returns the unusable settings.
func (b *Backend) readBadSettings(ctx context.Context) (found []badSetting, err error) {
	if b.db.Dialect != sqldb.MySQL {
		return nil, nil
	}
	names := []string{"'log_bin'", "'sql_log_bin'"}
	for _, s := range mysqlSettings {
		names = append(names, "'"+s.name+"'")
	}
	values := map[string]string{}
	err = b.db.Read(ctx, "read settings", func(ctx context.Context, on sqldb.Querier) error {
		query := "SHOW SESSION VARIABLES WHERE variable_name IN (" + strings.Join(names, ", ") + ")"
		return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
			var (
				name  string
				value sql.NullString
			)
			err := rows.Scan(&name, &value)
			values[name] = value.String
			return err
		})
	})
	if err != nil && b.db.Dialect.FailureOf(err) == sqldb.FailureJoinSize { // it refuses this very statement
		values["max_join_size"], err = "too low", nil
	} else if _, known := values["sql_select_limit"]; !known { // it has shortened this very answer
		values["sql_select_limit"] = "too low"
	}
	if err != nil {
		return nil, err
	}
	for _, s := range mysqlSettings {
		if value, known := values[s.name]; known && s.bad(value, values) {
			found = append(found, badSetting{s.name, value, s.effect, s.remedy + ", and change the server's configuration"})
		}
	}
	return found, nil
}

// readBadEngines returns the tables of the backend without transactions.
func (b *Backend) readBadEngines(ctx context.Context) (found []badSetting, err error) {
	if b.db.Dialect != sqldb.MySQL {
		return nil, nil
	}
	query := "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = DATABASE() AND engine <> 'InnoDB'" +
		" AND table_name IN (?" + strings.Repeat(", ?", len(tableNames)-1) + ") ORDER BY table_name"
	var names []any
	for _, name := range tableNames {
		names = append(names, b.config.Prefix+name)
	}
	err = b.db.Read(ctx, "read the engines of the tables", func(ctx context.Context, on sqldb.Querier) error {
		found = nil
		return sqldb.ForEach(ctx, on, query, func(rows *sql.Rows) error {
			var table, engine string
			err := rows.Scan(&table, &engine)
			found = append(found, badSetting{
				"the engine of " + table, engine, "the table has no transactions of InnoDB",
				"ALTER TABLE " + sqldb.MySQL.Quote(table) + " ENGINE = InnoDB",
			})
			return err
		}, names...)
	})
	return found, err
}

// checkSettings returns an error with all of found, or nil.
func checkSettings(found []badSetting, err error) error {
	errs := []error{err}
	for _, s := range found {
		errs = append(errs, s)
	}
	return errors.Join(errs...)
}
