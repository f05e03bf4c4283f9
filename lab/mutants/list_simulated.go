package main

// simulatedMutants break what a real server answers to the calls of simulated schedules.
var simulatedMutants = []mutant{
	{
		name: "take: a number only grows by one",
		file: "postgres/migrations/0001_functions.up.sql", from: "        SET term = greatest(p.term + 1, moment_ms),\n", to: "        SET term = p.term + 1,\n",
		promise: "2 Term numbers increase, whatever row the last leader saw",
		tests:   []tests{in("postgres", repeatsCalls)}, says: "{take} gives the number",
	},
	{
		name: "take: a vacancy is stated although no node saw the end",
		file: "postgres/migrations/0001_functions.up.sql", from: "AND p.reason <> 'server_changed' AND p.cause <> 'no node observed the end'\n", to: "AND p.reason <> 'server_changed'\n",
		promise: "a vacancy that no node observed is not stated",
		tests:   []tests{in("postgres", repeatsCalls)}, says: "says that the role was vacant for",
	},
	{
		name: "take: a restarted server is the same one",
		file: "postgres/migrations/0001_functions.up.sql", from: "t.server_lineage = lineage AND t.server_epoch = epoch\n", to: "t.server_lineage = lineage\n",
		promise: "1 One leader: a term waits on a server that has lost the locks",
		tests:   []tests{in("postgres", repeatsCalls)}, says: "without a look at its row",
	},
	{
		name: "registry: a heartbeat that is corrected is a death",
		file: "postgres/internal/install/false_times.go", from: "CASE WHEN n.died_at IS NOT NULL THEN least(n.died_at, clock_timestamp()) END,", to: "least(n.died_at, clock_timestamp()),",
		promise: "a living node has no time of death",
		tests:   []tests{in("postgres", "^TestCorrectedHeartbeatIsNoDeath$")}, says: "has a time of death after",
	},
	{
		name: "ended: a session that lives has ended",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE pg_try_advisory_xact_lock_shared(space, s.incarnation));", to: "WHERE NOT pg_try_advisory_xact_lock_shared(space, s.incarnation));",
		promise: "a session has ended when its node lock is free",
		tests:   []tests{in("postgres", repeatsCalls)}, says: "{take} says that session",
	},
	{
		name: "watch: a silent node is not reported",
		file: "postgres/migrations/0001_functions.up.sql", from: "ELSIF watched.left_ms < 0 THEN\n", to: "ELSIF watched.left_ms < -60000 THEN\n",
		promise: "a silent node is noticed when its time is over",
		tests:   []tests{in("postgres", repeatsCalls)}, says: "{watch} sees",
	},
}

const repeatsCalls = "^TestServerAnswersAsTheSimulatedOne$"
