package main

// replayMutants break replays, the lag and the record of processors that cannot work.
var replayMutants = []mutant{
	{
		name: "processor: nothing is counted beside a batch",
		file: "processor/recorder.go", from: "	g.counted = now\n	return time.Time{}, true\n", to: "	g.counted = now\n	return time.Time{}, false\n",
		promise: "the lag is measured whatever the loop does",
		tests:   []tests{in("processor", "^TestMeasurementsAreDue$")}, says: "a look is due",
	},
	{
		name: "processor: the lag of a led processor is always new",
		file: "processor/admin_queries.go", from: "    g.measured_at,\n    clock_timestamp()\n", to: "    CASE WHEN led.led THEN clock_timestamp() ELSE g.measured_at END,\n    clock_timestamp()\n",
		promise: "the time of a lag is that of the last measurement",
		tests:   []tests{in("processor", "^TestLagOfUnreadableLogIsOld$")}, says: "and the lag was measured at",
	},
	{
		name: "processor: each leader has just begun to fail",
		file: "processor/queries.go", from: "stuck_since = coalesce(stuck_since,", to: "stuck_since = coalesce(NULL,",
		promise: "a processor shows since when it cannot work, across leaders",
		tests:   []tests{in("processor", "^TestUnreadableLogIsRecorded$")}, says: "the next leader says that it cannot work since",
	},
	{
		name: "processor: it never works again",
		file: "processor/stuck.go", from: "	if !l.state.stuck || done.why == suspended", to: "	if l.state.stuck || done.why == suspended",
		promise: "a processor that works again is shown as such",
		tests:   []tests{in("processor", "^TestUnreadableLogIsRecorded$")}, says: "the record that the processor works",
	},
	{
		name: "processor: an unusable configuration has no row",
		file: "processor/stuck.go", from: "	if unusable {\n", to: "	if unusable && l.begun {\n",
		promise: "a processor that cannot begin is shown",
		tests:   []tests{in("processor", "^TestUnusableConfigurationIsRecorded$")}, says: "the record that the processor cannot work",
	},
	{
		name: "processor: one that never began ignores its start",
		file: "processor/start.go", from: "WHERE name = $1 AND (term > 0 OR generation > 0))", to: "WHERE name = $1)",
		promise: "a processor that could not begin begins with its start",
		tests:   []tests{in("processor", "^TestUnusableConfigurationIsRecorded$")}, says: "the record that the processor cannot work",
	},
	{
		name: "processor: a handler that hangs is only logged",
		file: "processor/call.go", from: "if err := l.recordStuck(limited, hangs, time.Since(ended)); err != nil", to: "if err := hangs; limited.Err() != nil",
		promise: "a handler that does not return is shown",
		tests:   []tests{in("processor", "^TestHangingHandlerIsRecorded$")}, says: "the record that the processor cannot work",
	},
	{
		name: "processor: live events wait for all replays",
		file: "processor/loop.go", from: "l.replays.turn = replaying && (!l.replays.turn || l.state.pause > 0);", to: "l.replays.turn = replaying;",
		promise: "a live event waits for at most two batches of a replay",
		tests:   []tests{in("processor", "^TestReplaysTakeTurnsWithLiveEvents$")}, says: "the live event waited for more than two batches",
	},
	{
		name: "processor: dead letters are replayed one by one",
		file: "processor/replay.go", from: "	limit, after := l.config.BatchSize, l.replays.after\n", to: "	limit, after := min(l.config.BatchSize, 1), l.replays.after\n",
		promise: "dead letters are replayed in batches",
		tests:   []tests{in("processor", "^TestReplaysTakeTurnsWithLiveEvents$")}, says: "the dead letters are replayed in",
	},
	{
		name: "processor: a range of the log is replayed",
		file: "processor/replay.go", from: "	if l.config.CursorsOnly || after.Before(", to: "	if after.Before(",
		promise: "a handler that reads a range of the log gets one dead letter",
		tests:   []tests{in("processor", "^TestReplayOfCursorsOnlyHasOneEvent$")}, says: "want one event at a time",
	},
	{
		name: "processor: a batch of dead letters fails as a whole",
		file: "processor/replay.go", from: "	case len(batch.ids) > 1:\n", to: "	case len(batch.ids) < 1:\n",
		promise: "a dead letter fails alone",
		tests:   []tests{in("processor", "^TestFailingReplayOfABatchFailsOneEvent$")}, says: "the others",
	},
	{
		name: "processor: a dismissed dead letter is replayed",
		file: "processor/replay.go", from: "marked.RowsAffected() < int64(len(ids))", to: "marked.RowsAffected() > int64(len(ids))",
		promise: "a replay that an operator cancels does not count",
		tests:   []tests{in("processor", "^TestDismissEndsAReplayInProgress$")}, says: "dismissed, the dead letters are",
	},
	{
		name: "processor: dead letters to replay are sorted",
		file: "processor/queries.go", from: "ORDER BY transaction_id, position\nLIMIT $4`", to: "ORDER BY id\nLIMIT $4`",
		promise: "the cost of a replayed event does not grow with the dead letters",
		tests:   []tests{in("processor", "^TestReplaysAreFoundByIndexes$")}, says: "are found by:",
	},
	{
		name: "processor: replayed dead letters are found among all requested ones",
		file: "processor/queries.go", from: "	markReplayed = `\nWITH found AS MATERIALIZED (\n    SELECT id, replay FROM {dead_letters} WHERE id = ANY ($1)", to: "	markReplayed = `\nWITH found AS MATERIALIZED (\n    SELECT id, replay FROM {dead_letters} WHERE id = ANY ($1) AND replay",
		promise: "the cost of a replayed event does not grow with the dead letters",
		tests:   []tests{in("processor", "^TestReplaysAreFoundByIndexes$")}, says: "are found by:",
	},
	{
		name: "doctor: a processor that cannot work is well",
		file: "cmd/tenure/internal/cli/database/doctor_work.go", from: "s.Status == processor.Active && s.StuckError != \"\"", to: "s.Status != processor.Active && s.StuckError != \"\"",
		promise: "the doctor names processors that cannot work",
		tests:   []tests{inCommand("internal/cli", "^TestStuckProcessorIsShown$")}, says: "on a processor that cannot work",
	},
	{
		name: "processor: a failed replay leaves no trace",
		file: "processor/queries.go", from: "        replay_failed_at = clock_timestamp(),\n", to: "        replay_failed_at = NULL,\n",
		promise: "cli: a dead letter that fails again is listed as such",
		tests:   []tests{inCommand("internal/cli", "^TestFailedReplayIsShown$")}, says: "a failed replay in JSON",
	},
}
