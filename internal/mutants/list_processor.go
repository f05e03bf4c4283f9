package main

// processorMutants break the processors of events.
var processorMutants = []mutant{
	{
		name: "processor: a cursor moves from anywhere",
		file: "processor/queries.go", from: "    AND cursor_position = $9\nRETURNING status, rebuild`", to: "    AND cursor_position >= $9\nRETURNING status, rebuild`",
		promise: "each event is applied once: a cursor moves by compare and set",
		tests:   []tests{in("processor", "^TestCommitsInFlight$|^TestProgressInFlight$")},
	},
	{
		name: "processor: a cursor moves over a rewind",
		file: "processor/queries.go", from: "    AND generation = $5\n    AND role = $6", to: "    AND $5::bigint >= 0\n    AND role = $6",
		promise: "a cursor that was moved by hand stays where it was put",
		tests:   []tests{in("processor", "^TestRewindWhileReadingAhead$|^TestRewindAndRebuild$|^TestSkipDuringAnAttempt$")},
	},
	{
		name: "processor: events above the horizon are read",
		file: "processor/log.go", from: "    AND log.transaction_id < pg_snapshot_xmin(pg_current_snapshot())\nORDER BY log.transaction_id, log.position\n", to: "    AND log.transaction_id <= pg_snapshot_xmax(pg_current_snapshot())\nORDER BY log.transaction_id, log.position\n",
		promise: "no event is passed over: only those are read that can get no predecessor",
		tests:   []tests{in("processor", "^TestReading$|^TestPositionsInverted$|^TestEventsAreHandledInOrder$")},
	},
	{
		name: "processor: selected events above the horizon are read",
		file: "processor/log.go", from: "        AND log.transaction_id < pg_snapshot_xmin(pg_current_snapshot())\n    ORDER BY", to: "        AND log.transaction_id <= pg_snapshot_xmax(pg_current_snapshot())\n    ORDER BY",
		promise: "no event is passed over: only those are read that can get no predecessor",
		tests:   []tests{in("processor", "^TestReading$|^TestPositionsInverted$")},
	},
	{
		name: "processor: a spoiled transaction is committed",
		file: "processor/batch.go", from: "err == nil && status != 'T' {", to: "err == nil && status == 0 {",
		promise: "a handler that ends or spoils its transaction has failed",
		tests:   []tests{in("processor", "^TestHandlersThatSpoilTheirTransaction$")},
	},
	{
		name: "processor: an attempt at a poisoned event is never the last",
		file: "processor/failure.go", from: "	l.state.blamed++\n", to: "	l.state.blamed += 0\n",
		promise: "after MaxAttempts Poison decides",
		tests:   []tests{in("processor", "^TestPoisonIsFoundInItsBatch$|^TestAttemptsOfSeveralTerms$")},
	},
	{
		name: "processor: an outage counts as an attempt",
		file: "processor/failure.go", from: "	if errors.Is(failure, ErrUnavailable) {\n		return false\n", to: "	if errors.Is(failure, ErrUnavailable) && l.config.MaxAttempts < 0 {\n		return false\n",
		promise: "an outage is no event's fault",
		tests:   []tests{in("processor", "^TestUnavailableIsNoEventsFault$")},
	},
	{
		name: "processor: what a publisher took is published again",
		file: "processor/batch.go", from: "		l.note(events[taken-1].Cursor, taken)\n", to: "		l.note(events[0].Cursor, taken)\n",
		promise: "an event is published once in a term",
		tests:   []tests{in("processor", "^TestPublishedOnceInATerm$")},
	},
	{
		name: "processor: progress is lost with an error",
		file: "processor/batch.go", from: "	if err == nil || errors.Is(err, errMoved) {\n		l.unsaved = unsaved{}\n", to: "	if err == nil || errors.Is(err, err) {\n		l.unsaved = unsaved{}\n",
		promise: "an event is published once in a term, also if its progress could not be saved",
		tests:   []tests{in("processor", "^TestPublishedOnceInATerm$|^TestUnknownCommits$")},
	},
	{
		name: "processor: transactions of the last term are left open",
		file: "processor/begin.go", from: "		if err := postgres.EndForerunners(ctx, tx, l.key()); err != nil {\n", to: "		if err := postgres.EndForerunners(ctx, tx, 1+l.key()); err != nil {\n",
		promise: "a new leader ends the transactions that the last one left open",
		tests:   []tests{in("processor", "^TestTransactionsOfForerunnersAreEnded$")},
	},
	{
		name: "processor: a panic of a handler ends the program",
		file: "processor/call.go", from: "recover()", to: "error(nil)",
		promise: "a panic of a handler is a failure of its batch",
		tests:   []tests{in("processor", "^TestHandlerThatPanics$")},
	},
}
