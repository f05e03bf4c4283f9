package main

// doorbellMutants break the doorbell, by which writers wake readers.
var doorbellMutants = []mutant{
	{
		name: "doorbell: a reader falls asleep without a last look",
		file: "internal/doorbell/bell.go", from: "	for err == nil {\n		b.wake()\n", to: "	for err == nil {\n		_ = b.wake\n",
		promise: "no row is missed, although writers do not notify a reader that is awake",
		tests:   []tests{in("internal/doorbell", "^TestNoRowIsMissed$")}, says: "after it could be read",
	},
	{
		name: "doorbell: a reader falls asleep beside writers that saw it awake",
		file: "internal/doorbell/doorbell.go", from: `	return l.try(ctx, "pg_try_advisory_lock", l.slot)`, to: `	return l.try(ctx, "pg_try_advisory_lock", l.slot+100)`,
		promise: "no row is missed, although writers do not notify a reader that is awake",
		tests:   []tests{in("internal/doorbell", "^TestReaderCannotFallAsleepBesideATransactionThatSawItAwake$")}, says: "fell asleep before the transaction ended",
	},
	{
		name: "doorbell: a ring does not make a sleeping reader look",
		file: "internal/doorbell/bell.go", from: "		if asleep {\n			b.wake()\n		}\n", to: "		if asleep {\n			_ = b.wake\n		}\n",
		promise: "no row is missed, although writers do not notify a reader that is awake",
		tests:   []tests{in("internal/doorbell", "^TestNoRowIsMissed$")}, says: "after it could be read",
	},
	{
		name: "doorbell: a reader that is awake does not look",
		file: "internal/doorbell/bell.go", from: "	for foundAt := time.Now(); ; b.wake() {", to: "	for foundAt := time.Now(); ; {",
		promise: "a row is handled in milliseconds",
		tests:   []tests{in("internal/doorbell", "^TestNoRowIsMissed$")}, says: "after it could be read",
	},
	{
		name: "doorbell: looks beside a long transaction are rare",
		file: "internal/doorbell/bell.go", from: "	most := 10 * time.Millisecond\n", to: "	most := 100 * time.Millisecond\n",
		promise: "a row is handled in milliseconds after the transactions before it have ended",
		tests:   []tests{in("internal/doorbell", "^TestNoRowIsMissed$")}, says: "after it could be read",
	},
	{
		name: "doorbell: a busy reader stays asleep",
		file: "internal/doorbell/bell.go", from: "rungAt.Sub(before) < quickly {", to: "rungAt.Sub(before) < 0 {",
		promise: "commits do not wait for each other while a reader is busy",
		tests:   []tests{in("internal/doorbell", "^TestBusyReaderIsRungRarely$")}, says: "of 1000 notify",
	},
	{
		name: "doorbell: a reader that finds rows falls asleep",
		file: "internal/doorbell/bell.go", from: "		if b.found.Swap(false) {\n", to: "		if b.found.Swap(false) && b.least < 0 {\n",
		promise: "commits do not wait for each other while a reader is busy",
		tests:   []tests{in("internal/doorbell", "^TestBusyReaderIsRungRarely$")}, says: "of 1000 notify",
	},
	{
		name: "doorbell: a reader falls asleep while it handles what it has found",
		file: "internal/doorbell/bell.go", from: "nothing < tired || !looked && nothing < overdue {", to: "nothing < tired || !looked && nothing < 0 {",
		promise: "commits do not wait for each other while a reader is busy",
		tests:   []tests{in("internal/doorbell", "^TestBusyReaderIsRungRarely$")}, says: "of 1000 notify",
	},
	{
		name: "doorbell: every ring wakes a reader up",
		file: "internal/doorbell/bell.go", from: "	quickly = 20 * time.Millisecond", to: "	quickly = time.Hour",
		promise: "a reader that is rung now and then looks once for each ring",
		tests:   []tests{in("internal/doorbell", "^TestBusyReaderIsRungRarely$")}, says: "of 1000 notify; want",
	},
	{
		name: "doorbell: writers share the locks until their session ends",
		file: "internal/doorbell/doorbell.go", from: "	tryShare = `pg_catalog.pg_try_advisory_xact_lock_shared(` + key + `)`", to: "	tryShare = `pg_catalog.pg_try_advisory_lock_shared(` + key + `)`",
		promise: "a writer behind a pooler leaves no lock behind",
		tests:   []tests{in("internal/doorbell", "^TestWritersBehindAPoolerRing$")}, says: "has kept a lock",
	},
	{
		name: "doorbell: a trigger rings the first reader only",
		file: "internal/doorbell/doorbell.go", from: `"{last}", fmt.Sprint(Slots-1)`, to: `"{last}", fmt.Sprint(0*Slots)`,
		promise: "writers notify if any reader is asleep",
		tests:   []tests{in("internal/doorbell", "^TestWritersNotifyOnlyReadersThatAreAsleep$")}, says: "is asleep; want 1",
	},
	{
		name: "doorbell: an append rings if all readers are asleep",
		file: "internal/doorbell/doorbell.go", from: `" AND "), channel`, to: `" OR "), channel`,
		promise: "writers notify if any reader is asleep",
		tests:   []tests{in("internal/doorbell", "^TestWritersNotifyOnlyReadersThatAreAsleep$")}, says: "is asleep; want 1",
	},
	{
		name: "doorbell: a reader takes the slot of another",
		file: "internal/doorbell/doorbell.go", from: "if free, err := l.try(ctx, \"pg_try_advisory_lock\", -1-l.slot); free || err != nil {", to: "if _, err := l.try(ctx, \"pg_try_advisory_lock\", -1-l.slot); err == nil || err != nil {",
		promise: "each slot serves one reader",
		tests:   []tests{in("internal/doorbell", "^TestWritersNotifyOnlyReadersThatAreAsleep$")}, says: "has the slot",
	},
	{
		name: "doorbell: the last slot is opened for all that share it",
		file: "internal/doorbell/doorbell.go", from: "	if l.slot == Slots-1 {\n		return false, nil", to: "	if l.slot == Slots {\n		return false, nil",
		promise: "readers beyond the slots are rung",
		tests:   []tests{in("internal/doorbell", "^TestReadersBeyondTheSlotsShareTheLast$")}, says: "the second is rung no more",
	},
	{
		name: "doorbell: processors do not say that they found events",
		file: "processor/tail.go", from: "	t.looked(scanned != end)\n", to: "	t.looked(false)\n",
		promise: "commits do not wait for each other while a processor is busy",
		tests:   []tests{in("processor", "^TestReaderReadsSelectedEvents$")}, says: "looks reported that they found events",
	},
	{
		name: "doorbell: an append rings always",
		file: "internal/doorbell/doorbell.go", from: "`CASE WHEN %s THEN", to: "`CASE WHEN (%s) IS NULL THEN",
		promise: "commits do not wait for each other while a processor is busy",
		tests:   []tests{in("processor", "^TestProcessorThatIsAwakeIsNotRung$")}, says: "notifications while the processor was awake",
	},
	{
		name: "doorbell: a trigger rings always",
		file: "internal/doorbell/doorbell.go", from: "        IF NOT {try} THEN\n", to: "        IF true OR NOT {try} THEN\n",
		promise: "commits do not wait for each other while an assigner is busy",
		tests:   []tests{in("assign", "^TestAssignerThatIsAwakeIsNotRung$")}, says: "notifications while the assigner was awake",
	},
	{
		name: "doorbell: the trigger of the log rings always",
		file: "internal/features/events/0001.up.sql", from: "        IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(", to: "        IF true OR NOT pg_catalog.pg_try_advisory_xact_lock_shared(",
		promise: "commits do not wait for each other while a processor is busy",
		tests:   []tests{in("eventstore", "^TestCommitsDoNotNotifyAReaderThatIsAwake$")}, says: "notifications; want none",
	},
}
