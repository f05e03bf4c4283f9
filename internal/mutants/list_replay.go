package main

// replayMutants break replays and the lag.
var replayMutants = []mutant{
	{
		name: "processor: nothing is counted beside a batch",
		file: "processor/recorder.go", from: "	g.counted = now\n	return time.Time{}, true\n", to: "	g.counted = now\n	return time.Time{}, false\n",
		promise: "the lag is measured whatever the loop does",
		tests:   []tests{in("processor", "^TestMeasurementsAreDue$")}, says: "a look is due",
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
}
