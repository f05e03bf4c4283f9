package main

// clockMutants make something wait for a time that was written while the database's clock
// was ahead.
var clockMutants = []mutant{
	{
		name: "clock: a reservation on PostgreSQL lasts until the false time",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHEN moment BETWEEN t.ended_at - (t.reserved_until - t.ended_at) AND t.reserved_until THEN 1000", to: "WHEN t.reserved_until > moment THEN 1000",
		promise: "a clock that was ahead reserves no role until its time",
		tests:   []tests{in("postgres", "^TestReservationOfFalseClockEnds$")}, says: "want it granted",
	},
	{
		name: "clock: heartbeats on PostgreSQL are never corrected",
		file: "postgres/internal/install/false_times.go", from: "const HasFalseTime = `last_heartbeat > clock_timestamp() + lease_ms * interval '1 millisecond'", to: "const HasFalseTime = `false",
		promise: "a clock that was ahead keeps no session that hangs",
		tests:   []tests{in("postgres", "^TestHungSessionOfFalseClockIsTerminated$")}, says: "still leads",
	},
	{
		name: "clock: a heartbeat of a false clock counts as none",
		file: "postgres/internal/install/false_times.go", from: "least(n.last_heartbeat, clock_timestamp()),", to: "clock_timestamp() - interval '1 hour',",
		promise: "a correction never ends trust earlier",
		tests:   []tests{in("postgres", "^TestNodeOfFalseClockIsForgotten$")}, says: "want the lease of",
	},
	{
		name: "clock: heartbeats do not look for false ones",
		file: "postgres/queries.go", from: "NOT BETWEEN p.last_heartbeat - p.lease_ms * interval '1 millisecond'", to: "NOT BETWEEN p.last_heartbeat - interval '10 years'",
		promise: "a clock that was ahead keeps no session that hangs",
		tests:   []tests{in("postgres", "^TestHungSessionOfFalseClockIsTerminated$")}, says: "still leads",
	},
	{
		name: "clock: the life of a server begins in the future",
		file: "postgres/queries.go", from: "greatest(0, 1000 * extract(epoch FROM clock_timestamp() - greatest(created_at", to: "(1000 * extract(epoch FROM clock_timestamp() - greatest(created_at",
		promise: "after a start under a clock that was ahead, a term waits for a lease",
		tests:   []tests{in("postgres", "^TestTermOfFalseStartWaitsForLeaseOnly$")}, says: "want at most the longest lease",
	},
	{
		name: "clock: leases are never corrected",
		file: "lease/roles.go", from: "r.expiresAt.Int64 > r.now+2*r.leaseLength.Int64", to: "r.expiresAt.Int64 < 0",
		promise: "a lease of a clock that was ahead ends within two leases",
		tests:   []tests{inShared("dialects", "^TestLeaseOfFalseClockExpires$/^SQLite$")}, says: "does not lead",
	},
	{
		name: "clock: a corrected lease is over immediately",
		file: "lease/queries_sessions.go", from: "SET last_heartbeat = {now}, expires_at = {now} + lease_us\n", to: "SET last_heartbeat = {now}, expires_at = {now}\n",
		promise: "a correction never ends trust earlier",
		tests:   []tests{inShared("dialects", "^TestLeaseOfFalseClockExpires$/^SQLite$")}, says: "want a lease of",
	},
	{
		name: "clock: a reservation by leases lasts until the false time",
		file: "lease/roles.go", from: "left > 0 && left <= 2*length", to: "left > 0 && length > 0",
		promise: "a clock that was ahead reserves no role until its time",
		tests:   []tests{inShared("dialects", "^TestLeaseReservationOfFalseClockEnds$/^SQLite$")}, says: "a role that was reserved under a false clock",
	},
	{
		name: "clock: a change of the server by leases is to come",
		file: "lease/acquire.go", from: "at.name == present && at.since <= at.now", to: "at.name == present",
		promise: "a change of the server under a clock that was ahead counts from now",
		tests:   []tests{inShared("dialects", "^TestServerChangeOfFalseClockAwaitsOneLease$/^SQLite$")}, says: "want it to wait for at most",
	},
	{
		name: "clock: a reader trusts a false lease of the store",
		file: "lease/store/lease.go", from: "r.validFor = r.length\n", to: "\n",
		promise: "no reader trusts a lease of a clock that was ahead for longer than its length",
		tests:   []tests{inShared("dialects", "^TestStoreLeaseOfFalseClockExpires$/^SQLite$")}, says: "the lease of a false clock",
	},
	{
		name: "clock: a lease of the store is never corrected",
		file: "lease/store/elect.go", from: "row.ownTerm && !row.isFalse()", to: "row.ownTerm",
		promise: "a lease of a clock that was ahead ends one window after the next election",
		tests:   []tests{inShared("dialects", "^TestStoreLeaseOfFalseClockExpires$/^SQLite$")}, says: "the next leader",
	},
	{
		name: "clock: a processor pauses until the false time",
		file: "processor/queries.go", from: "CASE WHEN clock_timestamp() BETWEEN last_error_at - (next_attempt_at - last_error_at) AND next_attempt_at", to: "CASE WHEN next_attempt_at > clock_timestamp()",
		promise: "a processor tries again when the clock is right",
		tests:   []tests{in("processor", "^TestRetryOfFalseClockIsDue$")}, says: "without the pause of the false clock",
	},
	{
		name: "clock: a silence lasts until the false time",
		file: "internal/program/alerting/queries.go", from: "WHERE ended_at IS NULL AND statement_timestamp() BETWEEN created_at - (until - created_at) AND until", to: "WHERE ended_at IS NULL AND until > clock_timestamp()",
		promise: "a silence of a clock that was ahead is over",
		tests:   []tests{inServer("internal/alerts", "^TestAttentionOfFalseClockEnds$")}, says: "the silenced alert",
	},
	{
		name: "clock: an acknowledgment lasts until the false time",
		file: "server/internal/alerts/attention.go", from: "!a.until.After(now) || a.until.Sub(now) > MaxAttention", to: "!a.until.After(now)",
		promise: "an acknowledgment of a clock that was ahead is over",
		tests:   []tests{inServer("internal/alerts", "^TestAttentionOfFalseClockEnds$")}, says: "the acknowledged one again",
	},
	{
		name: "clock: a notification pauses until the false time",
		file: "server/internal/alerts/queries.go", from: "WHERE next_attempt_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + $4::bigint * interval '1 millisecond'\n", to: "WHERE next_attempt_at <= clock_timestamp() AND $4::bigint > 0\n",
		promise: "a notification is tried again when the clock is right",
		tests:   []tests{inServer("internal/alerts", "^TestPauseOfFalseClockEnds$")}, says: "no_scheduler_leader firing",
	},
	{
		name: "clock: samples of a false clock are read",
		file: "metrics/sample_queries.go", from: "AND s.at BETWEEN clock_timestamp() - $2::bigint * interval '1 millisecond' AND clock_timestamp() + interval '30 seconds'", to: "AND s.at >= clock_timestamp() - $2::bigint * interval '1 millisecond'",
		promise: "samples of a clock that was ahead are not read",
		tests:   []tests{in("metrics", "^TestSamplesOfFalseClockAreNotRead$")}, says: "samples of the false clock are read",
	},
}
