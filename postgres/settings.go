package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
)

// setting is a parameter of a connection. Settings are made by SET after
// connecting, never as startup parameters, which survive DISCARD ALL.
type setting struct{ name, value string }

// One statement for all; synchronous_commit is kept where it is stronger.
const setAll = `
SELECT set_config(s.name, s.value, false)
FROM unnest($1::text[], $2::text[]) AS s(name, value)
WHERE s.name <> 'synchronous_commit' OR current_setting('synchronous_commit') <> 'remote_apply'`

func applySettings(ctx context.Context, conn *pgx.Conn, settings []setting) error {
	names, values := make([]string, len(settings)), make([]string, len(settings))
	for i, s := range settings {
		names[i], values[i] = s.name, s.value
	}
	if _, err := conn.Exec(ctx, setAll, names, values); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// common is what no connection may inherit from a role, a database or the
// server.
var common = []setting{
	{"search_path", "pg_catalog"},
	{"client_min_messages", "warning"},
	{"default_transaction_isolation", "read committed"},
	{"default_transaction_read_only", "off"},
	{"default_transaction_deferrable", "off"},
	{"synchronous_commit", "on"},
	{"jit", "off"},
}

// planning is for connections that ask the same all their life, and must answer
// at once: each statement is planned once, when it is warmed, and not for the few
// rows that there are at that time.
var planning = append([]setting{
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
}, common...)

// migrationSettings let a migration wait for another process's, as long as its
// context allows.
var migrationSettings = append([]setting{
	{"statement_timeout", "0"},
	{"lock_timeout", "0"},
	{"idle_in_transaction_session_timeout", "60000"},
}, common...)

// readerSettings have each question planned for what it asks for: the same
// statement may be about a minute or about years.
var readerSettings = append([]setting{
	{"plan_cache_mode", "force_custom_plan"},
	{"enable_seqscan", "on"},
	{"statement_timeout", milliseconds(askTimeout)},
	{"lock_timeout", "5000"},
	{"idle_in_transaction_session_timeout", "60000"},
}, common...)

// sessionSettings are those of the session connection. idle_session_timeout is
// the lease: the server itself ends a session that was silent for so long.
func sessionSettings(timing tenure.Timing, incarnation int32, version int) []setting {
	half := milliseconds(timing.RefreshInterval / 2)
	lease := milliseconds(timing.Lease)
	settings := append([]setting{
		{"idle_session_timeout", lease},
		{"idle_in_transaction_session_timeout", lease},
		{"statement_timeout", half},
		{"lock_timeout", half},
		{"client_connection_check_interval", "1000"},
		{incarnationSetting, strconv.Itoa(int(incarnation))},
	}, planning...)
	if version >= 170000 {
		settings = append(settings, setting{"transaction_timeout", lease})
	}
	return append(settings, tcpSettings(timing.Lease)...)
}

// incarnationSetting proves by its value that nobody has reset the session.
const incarnationSetting = "tenure.incarnation"

// Bounds of the watch connection. One call lasts at most Config.WatchPeriod.
const (
	watchStatementTimeout = 40 * time.Second
	watchIdleTimeout      = 90 * time.Second
)

func watchSettings(version int) []setting {
	settings := append([]setting{
		{"idle_session_timeout", milliseconds(watchIdleTimeout)},
		{"idle_in_transaction_session_timeout", milliseconds(watchStatementTimeout)},
		{"statement_timeout", milliseconds(watchStatementTimeout)},
		{"lock_timeout", "1000"},
		{"client_connection_check_interval", "1000"},
	}, planning...)
	if version >= 170000 {
		settings = append(settings, setting{"transaction_timeout", milliseconds(watchStatementTimeout)})
	}
	return append(settings, tcpSettings(watchStatementTimeout)...)
}

// tcpSettings make the server give up a dead network connection after twice a
// time, never before it: TCP must not free a lock while trust still runs.
func tcpSettings(least time.Duration) []setting {
	const probes = 4
	seconds := func(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }
	return []setting{
		{"tcp_user_timeout", milliseconds(2 * least)},
		{"tcp_keepalives_idle", seconds(least)},
		{"tcp_keepalives_interval", seconds(least / probes)},
		{"tcp_keepalives_count", strconv.Itoa(probes)},
	}
}

// milliseconds renders a duration for a setting, never as 0, which would mean
// no limit.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}
