package main

// claimMutants break sentences of the documents that their own tests did not hold.
var claimMutants = []mutant{
	{
		name: "postgres: a role without a row awaits its candidate's lease only",
		file: "postgres/reunion.go", from: "s.server.BornAt+max(timing.Settle, timing.Lease, s.server.Longest, timing.FailoverWait)", to: "s.server.BornAt+max(timing.Settle, timing.Lease, timing.FailoverWait)",
		promise: "1 One leader: the whole wait applies to a role without a row",
		tests:   []tests{in("postgres", "^TestNewRoleAwaitsTheLongestTimeAfterCrash$")}, says: "want it to wait for",
	},
	{
		name: "postgres: the lease in the row of a role does not count",
		file: "postgres/reunion.go", from: "max(settle, timing.Lease, row.lease, s.server.Longest", to: "max(settle, timing.Lease, s.server.Longest",
		promise: "1 One leader: the whole wait applies if the last leader's row was deleted",
		tests:   []tests{in("postgres", "^TestLeaseOfDeletedLeaderIsAwaitedAfterCrash$")}, says: "want it to wait for the leader's lease",
	},
	{
		name: "outbox: messages carry their epoch instead of their term",
		file: "outbox/outbox.go", from: "Term: term.Number(), Event: event", to: "Term: event.Epoch, Event: event",
		promise: "a consumer that checks term numbers drops messages of stale leaders",
		tests:   []tests{in("outbox", "^TestConsumerDropsMessageOfStaleLeader$")}, says: "want it dropped",
	},
	{
		name: "postgres: a term that has ended passes the fence until the next one",
		file: "postgres/fence.go", from: "WHERE t.ended_at IS NULL\n", to: "WHERE t.ended_at IS NULL OR true\n",
		promise: "a fenced transaction commits only while its term is valid",
		tests:   []tests{in("postgres", "^TestTransactionIsFencedBetweenTerms$")}, says: "a transaction whose term has ended",
	},
	{
		name: "postgres: an open transaction after a statement is no pooler",
		file: "internal/pgdial/check.go", from: "status != 'I' && !conn.IsClosed()", to: "status == 'E' && !conn.IsClosed()",
		promise: "a pooler is recognized if it leaves a statement uncommitted",
		tests:   []tests{in("postgres", "^TestSessionInTransactionIsLost$")}, says: "a heartbeat within a transaction",
	},
	{
		name: "postgres: an index that is not unique fences",
		file: "internal/schema/parts.go", from: "CASE WHEN i.indisunique THEN 'unique' ELSE 'not unique' END", to: "CASE WHEN true THEN 'unique' ELSE 'not unique' END",
		promise: "sessions that open detect that the unique index is gone",
		tests:   []tests{in("postgres", "^TestDiagnoseReportsOnDatabase$")}, says: "with an index that",
	},
	{
		name: "cron: a node on another backend is an invalid setting",
		file: "cron/scheduler.go", from: "schedules need sessions on PostgreSQL\", tenure.ErrUnsupported)", to: "schedules need sessions on PostgreSQL\", tenure.ErrInvalidConfig)",
		promise: "constructors that take any node return ErrUnsupported",
		tests:   []tests{in("cron", "^TestNewSchedulerRejectsOtherBackends$")}, says: "want ErrUnsupported",
	},
	{
		name: "model: a search that ran out of memory passes",
		file: "lab/model/search.go", from: "	case found[2] == \"0\" && !stopped:\n", to: "	case found[2] == \"0\" && (!stopped || stopped):\n",
		promise: "make model visits every state",
		tests:   []tests{inLaboratory("model", "^TestOnlyFinishedSearchesPass$")}, says: ": the verdict is ",
	},
	{
		name: "model: a variant may be refuted by any property",
		file: "lab/model/main.go", from: "	case found.refuted != s.variant.property:\n", to: "	case found.refuted == \"\":\n",
		promise: "make model refutes each rule that is broken on purpose",
		tests:   []tests{inLaboratory("model", "^TestOnlyFinishedSearchesPass$")}, says: ": the verdict is ",
	},
	{
		name: "model: a digest leaves out the statements in Go",
		file: "lab/model/code.go", from: "			tokens = append(tokens, sqlWords(literal)...)\n", to: "			tokens = append(tokens, \"\")\n",
		promise: "a model describes the present code",
		tests:   []tests{inLaboratory("model", "^TestDigestFollowsTheCode$")}, says: " stays when ",
	},
}
