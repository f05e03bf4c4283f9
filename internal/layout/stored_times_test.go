package layout

// storedTime is a time in a table that a statement compares with the database's clock.
type storedTime struct {
	folder, column string
	// rule says what happens if the clock was ahead when the time was written, and is
	// right again.
	rule string
	test string // that proves the rule; empty where nothing waits for the time
}

// The rules that several times share.
const (
	heartbeatRule = "a heartbeat more than a lease ahead becomes one of now, so that it is over a lease later"
	twice         = "with more than twice its time left it is over"
	shownOnly     = "it is only shown"
	removedLater  = "rows of the false span stay until then, and hold back no others"
	readsOnly     = "its statement ends with its connection, which the client closes when nothing comes for most of a lease"
)

// storedTimes is every time that is compared with the database's clock, except those of
// schedules. A clock that was behind writes times that have passed, which nothing waits for.
var storedTimes = []storedTime{
	{"postgres", "last_heartbeat", heartbeatRule, "TestHungSessionOfFalseClockIsTerminated"},
	{"postgres/migrations", "last_heartbeat", heartbeatRule, "TestHungSessionOfFalseClockIsTerminated"},
	{"server/internal/alerts", "last_heartbeat", heartbeatRule, "TestHungSessionOfFalseClockIsTerminated"},
	{"postgres", "trust_until", "it is at most the longest lease away", "TestNodeOfFalseClockIsForgotten"},
	{"postgres", "lease_until", heartbeatRule, "TestHungSessionOfFalseClockIsTerminated"},
	{"processor", "lease_until", heartbeatRule, "TestHungSessionOfFalseClockIsTerminated"},
	{"server/internal/alerts", "lease_until", heartbeatRule, "TestHungSessionOfFalseClockIsTerminated"},
	{"postgres", "created_at", "the life of the server began at the latest when a session reads it", "TestTermOfFalseStartWaitsForLeaseOnly"},
	{"postgres", "reserved_until", twice, "TestReservationOfFalseClockEnds"},
	{"postgres/migrations", "reserved_until", twice, "TestReservationOfFalseClockEnds"},
	{"postgres", "ended_at", "from it to the end a reservation lasts", "TestReservationOfFalseClockEnds"},
	{"postgres/migrations", "ended_at", "from it to the end a reservation lasts", "TestReservationOfFalseClockEnds"},
	{"postgres", "requested_at", "an answer that no requester took is removed a minute before its time or after it", ""},
	{"postgres/migrations", "moved_at", readsOnly, "TestStuckSessionIsTerminatedAlthoughWatchFallsSilent"},
	{"postgres/migrations", "pulsed", readsOnly, "TestStuckSessionIsTerminatedAlthoughWatchFallsSilent"},
	{"postgres/migrations", "deadline", readsOnly, "TestStuckSessionIsTerminatedAlthoughWatchFallsSilent"},
	{"postgres/migrations", "read_at", readsOnly, "TestStuckSessionIsTerminatedAlthoughWatchFallsSilent"},
	{"postgres/migrations", "opened_at", "a session that opened later than now counts as old", ""},
	{"postgres/migrations", "restless_until", readsOnly, "TestStuckSessionIsTerminatedAlthoughWatchFallsSilent"},
	{"postgres", "expires_at", "the nodes of the other mode correct it", "TestLeaseOfFalseClockExpires"},

	{"lease", "expires_at", "a lease that ends later than in two of its lengths ends one length from now", "TestLeaseOfFalseClockExpires"},
	{"lease", "reservedUntil", twice, "TestLeaseReservationOfFalseClockEnds"},
	{"lease", "expiresAt", "a lease that ends later than in two of its lengths ends one length from now", "TestLeaseOfFalseClockExpires"},
	{"lease", "readyAt", "it is at most the longest wait away", "TestServerChangeOfFalseClockAwaitsOneLease"},
	{"lease", "ready", "it is at most the longest wait away", "TestServerChangeOfFalseClockAwaitsOneLease"},
	{"lease", "since", "a change of the server that is to come counts from now", "TestServerChangeOfFalseClockAwaitsOneLease"},
	{"lease", "ended_at", removedLater, ""},
	{"lease", "last_seen", shownOnly, ""},
	{"lease", "requested_at", "an answer that no requester took is removed a minute before its time or after it", ""},
	{"lease/store", "lease_expires_at", "a lease that ends later than in two of its lengths ends one length from now", "TestStoreLeaseOfFalseClockExpires"},
	{"lease/store", "expires_at", "a candidate of the false span is listed until then, and keeps no other from leading", ""},

	{"processor", "next_attempt_at", twice, "TestRetryOfFalseClockIsDue"},
	{"processor", "last_error_at", "from it to the end a pause lasts", "TestRetryOfFalseClockIsDue"},
	{"processor", "refused_at", "a refusal that is to come is not shown, and is recorded again", ""},
	{"processor", "since", shownOnly, ""},
	{"processor", "stuck_since", shownOnly, ""},

	{"server/internal/alerts", "acked_until", "an acknowledgment for longer than the longest is over", "TestAttentionOfFalseClockEnds"},
	{"server/internal/alerts", "until", twice, "TestAttentionOfFalseClockEnds"},
	{"internal/program/alerting", "created_at", "from it to the end a silence lasts", "TestAttentionOfFalseClockEnds"},
	{"server/internal/alerts", "created_at", "from it to the end a silence lasts; a notification is tried until a day after it", "TestAttentionOfFalseClockEnds"},
	{"server/internal/alerts", "next_attempt_at", "a pause that is longer than the longest is over", "TestPauseOfFalseClockEnds"},
	{"server/internal/alerts", "ActiveAt", "it becomes now, so that the alert fires after its time", "TestForRestartsWhenClockGoesBack"},
	{"server/internal/alerts", "settled_at", removedLater, ""},
	{"server/internal/alerts", "ended_at", removedLater, ""},

	{"metrics", "at", "a sample that is to come is not read", "TestSamplesOfFalseClockAreNotRead"},
	{"metrics", "keep_until", removedLater, ""},
}
