package main

// scheduleMutants break what schedules do after the clock was wrong, with a leader that
// cannot work, and without one that has them.
var scheduleMutants = []mutant{
	// The clock.
	{
		name: "cron: a schedule waits for a time that the clock showed by mistake",
		file: "cron/read.go", from: "return row.loaded && row.ahead })", to: "return row.loaded && row.ahead && false })",
		promise: "schedules continue from the true time",
		tests:   []tests{in("cron", "^TestSchedulesContinueAfterClockWasAhead$")}, says: "ticks after the clock was right again",
	},
	{
		name: "cron: ticks that were missed in the future keep their rows",
		file: "cron/ahead.go", from: "        AND (r.state IN ('missed', 'skipped') OR r.state", to: "        AND (r.state IN ('skipped') OR r.state",
		promise: "a tick that was missed before it came runs when it comes",
		tests:   []tests{in("cron", "^TestSchedulesContinueAfterClockWasAhead$")}, says: "ticks that were missed in the future",
	},
	{
		name: "cron: catch-up runs of the future start",
		file: "cron/ahead.go", from: " OR r.state = 'waiting' AND r.term = 0)", to: ")",
		promise: "ticks of a false time start in it only",
		tests:   []tests{in("cron", "^TestSchedulesContinueAfterClockWasAhead$")}, says: "ticks of the false time ran after it",
	},
	{
		name: "cron: the last run is one of a false time",
		file: "cron/admin_queries.go", from: "        AND l.scheduled_for <= statement_timestamp() + interval '1 minute'\n", to: "        AND true\n",
		promise: "the last run is the last one of the true time",
		tests:   []tests{in("cron", "^TestSchedulesContinueAfterClockWasAhead$")}, says: "want one of the true time",
	},
	{
		name: "cron: the next tick is handled already",
		file: "cron/admin.go", from: "	if s.HandledUntil.After(now) {\n", to: "	if s.HandledUntil.IsZero() {\n",
		promise: "the next tick is one that starts",
		tests:   []tests{in("cron", "^TestNoTickRunsTwiceAfterClockWasSetBack$")}, says: "want it after those that are handled",
	},
	{
		name: "cron: the next tick has run already",
		file: "cron/admin.go", from: "tick, time.Time.Compare); !ran {", to: "tick, time.Time.Compare); !ran || true {",
		promise: "the next tick is one that starts",
		tests:   []tests{in("cron", "^TestClockSetBackAfterOutageRepeatsNoTick$")}, says: "which has run",
	},
	{
		name: "cron: a schedule is turned back without a gap",
		file: "cron/queries.go", from: "            WHEN d.late THEN coalesce(s.before_gap, s.handled_until)\n", to: "            WHEN true THEN coalesce(s.before_gap, s.handled_until)\n",
		promise: "a clock that is wrong now turns no schedule back",
		tests:   []tests{in("cron", "^TestNoTickRunsTwiceAfterClockWasSetBack$")}, says: "the schedule was turned back",
	},
	{
		name: "cron: a requested run waits for the time of its request",
		file: "cron/queries.go", from: "        SELECT coalesce(r.retry_at, to_timestamp(0))\n", to: "        SELECT coalesce(r.retry_at, r.claimed_at)\n",
		promise: "a run that waits since a false time starts",
		tests:   []tests{in("cron", "^TestRunsStartThatWaitSinceTheClockWasAhead$")}, says: "the requested run and the retry",
	},
	{
		name: "cron: a retry waits for longer than its delay",
		file: "cron/ahead.go", from: "SET retry_at = clock_timestamp() + r.retry_delay\n", to: "SET retry_at = r.retry_at\n",
		promise: "a retry waits for at most its delay",
		tests:   []tests{in("cron", "^TestRunsStartThatWaitSinceTheClockWasAhead$")}, says: "the requested run and the retry",
	},
	{
		name: "cron: ticks that are passed over are lost",
		file: "cron/plan.go", from: "	missed.count = passed\n", to: "	_ = passed\n",
		promise: "each tick that was missed is counted",
		tests:   []tests{in("cron", "^TestYearOfTicksIsDecidedSoon$")}, says: "rows until",
	},

	// Leaders that cannot work, or lack a schedule.
	{
		name: "cron: a leader that cannot work is silent",
		file: "cron/loop.go", from: "				l.recordFailure(ctx, err)\n", to: "				_ = l.recordFailure\n",
		promise: "a leader that cannot work is recorded",
		tests:   []tests{in("cron", "^TestLeaderThatCannotWorkIsRecorded$"), in("cron", "^TestRevokedPrivilegeIsRecorded$")}, says: "that the failure is recorded",
	},
	{
		name: "cron: a failure is never over",
		file: "cron/failures.go", from: "SET errors = 0, last_error = '', failing_since = NULL\n", to: "SET errors = errors\n",
		promise: "a failure is shown while it lasts",
		tests:   []tests{in("cron", "^TestLeaderThatCannotWorkIsRecorded$")}, says: "that it is over",
	},
	{
		name: "cron: an invalid override is only logged",
		file: "cron/adopt.go", from: "			l.failures.invalid[name] = \"an operator's", to: "			l.failures.invalid[\"\"] = \"an operator's",
		promise: "a schedule that cannot run is recorded",
		tests:   []tests{in("cron", "^TestInvalidOverrideIsRecorded$")}, says: "that the failure is recorded",
	},
	{
		name: "cron: no schedule is overdue",
		file: "cron/admin.go", from: "!tick.IsZero() && late > maxLate {", to: "tick.IsZero() && late > maxLate {",
		promise: "a schedule whose ticks are not handled is shown",
		tests:   []tests{in("cron", "^TestUnhandledTickMakesScheduleOverdue$")}, says: "want it to be overdue",
	},
	{
		name: "cron: an interrupted run of a paused schedule is repeated",
		file: "cron/queries.go", from: "r.manual AND (r.attempt = 1 OR r.retry_at IS NOT NULL)", to: "r.manual",
		promise: "a pause ends the repetitions of a job that ends each leader",
		tests:   []tests{in("cron", "^TestPauseKeepsInterruptedRunWaiting$")}, says: "want it to wait",
	},
	{
		name: "cron: a run of a schedule without a leader runs forever",
		file: "cron/orphans.go", from: "        AND (r.state = 'running' OR r.state", to: "        AND (r.state = 'none' OR r.state",
		promise: "each run ends, is repeated or waits for a leader",
		tests:   []tests{in("cron", "^TestRunOfScheduleThatNextLeaderLacksEnds$")}, says: "the end of the run",
	},
	{
		name: "cron: a requested run waits forever for a schedule",
		file: "cron/orphans.go", from: "time.Since(l.began) >= l.orphanWait", to: "time.Since(l.began) < 0",
		promise: "a run of a schedule that no leader has ends",
		tests:   []tests{in("cron", "^TestRequestedRunOfScheduleThatLeaderLacksEnds$")}, says: "the end of the run",
	},
	{
		name: "cron: a request for a schedule that the leader lacks is accepted",
		file: "cron/admin_queries.go", from: "                AND l.term <> s.term\n", to: "                AND l.term < s.term\n",
		promise: "a request that would wait forever is refused",
		tests:   []tests{in("cron", "^TestTriggerOfScheduleThatLeaderLacksIsRefused$")}, says: "want a ConflictError",
	},

	// The end of an alert.
	{
		name: "alerts: a vacancy ends with the round that sees it",
		file: "server/internal/alerts/relate.go", from: "			end = t.Began\n", to: "			_ = t.Began\n",
		promise: "a vacancy lasts until the next term begins",
		tests:   []tests{inServer("internal/alerts", "^TestMessageTellsIncidentAndVacancy$")}, says: "want the beginning of the next term",
	},
	{
		name: "cron: a pause drops the ticks that no leader has handled",
		file: "cron/unhandled.go", from: "		missed.add(tick)\n", to: "		_ = tick\n",
		promise: "each tick runs or is recorded, also if the schedule is paused while no node leads",
		tests:   []tests{in("cron", "^TestPauseRecordsTicksThatNoLeaderHandled$")}, says: "ticks are recorded as missed before the pause",
	},
	{
		name: "cron: a run of an earlier false time hides ticks before it",
		file: "cron/ahead.go", from: "                AND r.id > coalesce((\n", to: "                AND 0 <= coalesce((\n",
		promise: "each tick is claimed once, or recorded as missed, also if the clock was ahead twice",
		tests:   []tests{in("cron", "^TestNoTickIsLostIfClockIsAheadTwice$")}, says: "ticks are neither run nor recorded as missed",
	},
	{
		name: "cron: a resumed schedule waits for a time of a false clock",
		file: "cron/admin_queries.go", from: "WHEN $2 THEN before_gap WHEN clock_timestamp() > $10::timestamptz + interval '1 minute'", to: "WHEN $2 THEN before_gap WHEN clock_timestamp() < $10::timestamptz - interval '1 minute'",
		promise: "a schedule that an operator resumed while the clock was ahead continues from the true time",
		tests:   []tests{in("cron", "^TestScheduleOfAnOperatorContinuesAfterClockWasAhead$")}, says: "ticks after the clock was right again",
	},
	{
		name: "cron: a changed schedule waits for a time of a false clock",
		file: "cron/admin_queries.go", from: "WHEN clock_timestamp() > $12::timestamptz", to: "WHEN clock_timestamp() > $12::timestamptz + interval '1 year'",
		promise: "a schedule that an operator changed while the clock was ahead continues from the true time",
		tests:   []tests{in("cron", "^TestScheduleOfAnOperatorContinuesAfterClockWasAhead$")}, says: "ticks after the clock was right again",
	},
	{
		name: "cron: a new schedule waits for a time of a false clock",
		file: "cron/queries.go", from: "THEN '-infinity'::timestamptz END,\n", to: "THEN NULL::timestamptz END,\n",
		promise: "a schedule that is declared or added while the clock is ahead continues from the true time",
		tests:   []tests{in("cron", "^TestScheduleOfAnOperatorContinuesAfterClockWasAhead$")}, says: "ticks after the clock was right again",
	},
}
