package pgdial

import (
	"strconv"
	"time"
)

// Use is the purpose of a connection. A setting applies to a set of them.
type Use uint8

// The uses of connections.
const (
	Session   Use = 1 << iota // holds the locks of a node
	Watch                     // waits for the death of another node
	Question                  // short statements: status, requests, the end of fenced transactions
	Listen                    // waits for notifications
	Migration                 // changes the schema
	Pool                      // statements of schedules, processors, samples and the dashboard

	every = Session | Watch | Question | Listen | Migration | Pool
	long  = Session | Watch // plan each statement once
	// All but migrations: their objects belong to the role chosen by the user.
	asItself = every &^ Migration
)

// Limits are the durations of a connection, where they depend on the node.
type Limits struct {
	Lease       time.Duration // of a session; otherwise the longest statement
	Statement   time.Duration // 0 is without bound
	Lock        time.Duration // 0 is without bound
	Idle        time.Duration // 0 is without bound
	Incarnation int64         // of a session
	User        string        // logged in
}

// setting is a row of the table, one setting of a connection. Without it a role, a
// database, the server or the connection string could change the meaning or the time limit
// of a statement.
type setting struct {
	on    Use
	name  string
	value func(Limits) string
	why   string
}

// IncarnationSetting proves by its value that no other program has reset a session.
const IncarnationSetting = "tenure.incarnation"

// table is every setting of every connection of Tenure. A name unknown to the server is
// left out: it belongs to a later release. Two rows have conditions, see setAll and
// check.go: synchronous_commit and default_transaction_read_only.
//
// Settings are made after connecting and not as startup parameters: the check for a pooler
// must be reached, to name it.
var table = []setting{
	// The meaning of a value.
	{every, "client_encoding", fixed("UTF8"), "text is sent and read as UTF-8: with another encoding one name would be two"},
	{every, "DateStyle", fixed("ISO, YMD"), "times in text are read as ISO 8601"},
	{every, "IntervalStyle", fixed("postgres"), "intervals in text"},
	{every, "TimeZone", fixed("UTC"), "times without a zone, and the limits of days"},
	{every, "extra_float_digits", fixed("1"), "floating-point numbers are not rounded"},
	{every, "bytea_output", fixed("hex"), "bytes in text"},
	{every, "standard_conforming_strings", fixed("on"), "a backslash in a constant is a backslash"},
	{every, "array_nulls", fixed("on"), "NULL in arrays is no text"},
	{every, "quote_all_identifiers", fixed("off"), "the server writes definitions as the migrations did"},
	{every, "search_path", fixed("pg_catalog"), "functions and operators are those of PostgreSQL"},

	// The acting role, and its scope.
	{asItself, "role", fixed("none"), "another current role can neither see nor end the sessions of this user"},
	{every, "row_security", fixed("off"), "a policy that hides rows is an error instead of a second leader"},
	{every, "session_replication_role", fixed("origin"), "triggers and foreign keys work"},
	{Migration, "default_table_access_method", fixed("heap"), "fencing needs row locks"},

	// Transactions.
	{every, "default_transaction_isolation", fixed("read committed"), "the statements are written for it"},
	{every, "default_transaction_deferrable", fixed("off"), "no statement waits for a safe snapshot"},
	{every, "exit_on_error", fixed("off"), "an error, such as a lock held too long, does not end the session with its roles"},
	{every, "default_transaction_read_only", fixed("off"), "only where a role, a database or the connection string turned it on"},
	{every, "synchronous_commit", fixed("on"), "an acknowledged heartbeat or term survives a crash; remote_apply is kept"},

	// Time.
	{every, "statement_timeout", of(func(l Limits) time.Duration { return l.Statement }), "the connection's own bound"},
	{every, "lock_timeout", of(func(l Limits) time.Duration { return l.Lock }), "the connection's own bound"},
	{every, "idle_session_timeout", of(func(l Limits) time.Duration { return l.Idle }), "the lease of a session: the server ends one that is silent"},
	{Session | Watch, "idle_in_transaction_session_timeout", of(func(l Limits) time.Duration { return l.Lease }), "no transaction outlives the lease"},
	{every &^ (Session | Watch), "idle_in_transaction_session_timeout", fixed("60000"), "a program that stops within a transaction does not hold back VACUUM"},
	{Session | Watch, "transaction_timeout", of(func(l Limits) time.Duration { return l.Lease }), "no transaction outlives the lease"},
	{every &^ (Session | Watch), "transaction_timeout", fixed("0"), "statement_timeout bounds them"},
	{Session, "client_connection_check_interval", fixed("1000"), "a client that is gone is noticed during a statement"},
	{Watch, "client_connection_check_interval", fixed("5000"), "the same while the watch waits; its messages notice that too, and each check costs as much as an attempt"},
	{Session | Watch, "tcp_user_timeout", of(func(l Limits) time.Duration { return 2 * l.Lease }), "TCP does not free a lock before trust has ended"},
	{Session | Watch, "tcp_keepalives_idle", seconds(1), "as tcp_user_timeout"},
	{Session | Watch, "tcp_keepalives_interval", seconds(probes), "as tcp_user_timeout"},
	{Session | Watch, "tcp_keepalives_count", fixed(strconv.Itoa(probes)), "as tcp_user_timeout"},

	// Plans and messages.
	{every, "client_min_messages", fixed("warning"), "a warning on a heartbeat is a failure, and must arrive"},
	{every, "jit", fixed("off"), "no statement is worth compiling"},
	{long, "plan_cache_mode", fixed("force_generic_plan"), "each statement is planned once, when the connection opens"},
	{long, "enable_seqscan", fixed("off"), "and not for the few rows of that moment"},
	{every &^ long, "plan_cache_mode", fixed("force_custom_plan"), "the same statement may be about a minute or about years"},
	{every &^ long, "enable_seqscan", fixed("on"), "the same"},

	{Session, IncarnationSetting, func(l Limits) string { return strconv.FormatInt(l.Incarnation, 10) }, "see IncarnationSetting"},
}

// probes is how many unanswered keepalives end a connection.
const probes = 4

func fixed(value string) func(Limits) string { return func(Limits) string { return value } }

// of renders a duration in milliseconds. Only none is 0: it means no bound.
func of(duration func(Limits) time.Duration) func(Limits) string {
	return func(l Limits) string {
		d := duration(l)
		if d > 0 {
			d = max(d, time.Millisecond)
		}
		return strconv.FormatInt(d.Milliseconds(), 10)
	}
}

// seconds renders a part of the lease in whole seconds, never too few.
func seconds(part time.Duration) func(Limits) string {
	return func(l Limits) string {
		return strconv.Itoa(int((l.Lease/part + time.Second - 1) / time.Second))
	}
}

// startupParameters returns the settings for the meaning of values, as far as poolers pass
// them on, for connections through one.
func startupParameters() map[string]string {
	parameters := map[string]string{}
	for _, s := range table {
		switch s.name {
		case "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings":
			parameters[s.name] = s.value(Limits{})
		}
	}
	return parameters
}

// settings returns the names and values for a use.
func settings(use Use, limits Limits) (names, values []string) {
	for _, s := range table {
		if s.on&use != 0 {
			names = append(names, s.name)
			values = append(values, s.value(limits))
		}
	}
	return names, values
}
