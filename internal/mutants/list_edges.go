package main

// edgeMutants break what holds when something else changes in the same moment: another
// call, session, server, term or operator.
var edgeMutants = []mutant{
	{
		name: "engine: a new session does not try vacant roles",
		file: "session.go", from: "	s.attemptAllNowLocked() // the server may", to: "	// s.attemptAllNowLocked() // the server may",
		promise: "7 Someone leads: a node campaigns when its next session opens",
		tests:   []tests{in(".", "^TestStandbyCampaignsWhenItsNextSessionOpens$")}, says: "while it had no session",
	},
	{
		name: "postgres: the second process with a node's id forgets who trusted before the first",
		file: "postgres/join.go", from: "        ELSE greatest(n.trust_until, n.last_heartbeat + n.lease_ms * interval '1 millisecond')\n", to: "        ELSE n.last_heartbeat + n.lease_ms * interval '1 millisecond'\n",
		promise: "1 One leader: after a crash of the server, terms wait for each process that may trust",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")}, says: "; want outcome",
	},
	{
		name: "engine: a role that a living session leads is tried again and again after a notification",
		file: "acquire.go", from: " && !result.Led {", to: " {",
		promise: "after a notification a candidate tries a led role once",
		tests:   []tests{in(".", "^TestLedRoleIsTriedOnceAfterNotification$")}, says: "attempts after three notifications",
	},
	{
		name: "postgres: the current term of a role makes its ended ones valid",
		file: "postgres/fence.go", from: "slices.Contains(valid, validTerm{m.role, m.term})", to: "slices.ContainsFunc(valid, func(v validTerm) bool { return v.role == m.role })",
		promise: "3 Fencing: every term of a transaction is valid",
		tests:   []tests{in("postgres", "^TestFenceRejectsEndedTermBesideCurrentOne$")}, says: "has ended: ",
	},
	{
		name: "postgres: a join waits for the row of a leader that died long ago",
		file: "postgres/join.go", from: "FOR NO KEY UPDATE SKIP LOCKED\n", to: "FOR NO KEY UPDATE\n",
		promise: "7 Someone leads: a locked row delays its role only",
		tests:   []tests{in("postgres", "^TestLockedRowOfLongDeadLeaderDelaysNoJoin$")}, says: "while a transaction holds the row",
	},
	{
		name: "postgres: transactions on another server are terminated",
		file: "postgres/fencing.go", from: "f.session.checkServer(ctx, conn); err != nil {", to: "f.session.checkServer(ctx, conn); err != nil && false {",
		promise: "a candidate ends only the transactions that it waits for",
		tests:   []tests{in("postgres", "^TestTransactionsOnAnotherServerAreNotTerminated$")}, says: "looked for transactions on another server",
	},
	{
		name: "engine: a request for the node is lost with the session that took it",
		file: "requests.go", from: "		if r.Kind == RequestDrain || r.Kind == RequestUndrain {\n			n.handle", to: "		if lost == nil && (r.Kind == RequestDrain || r.Kind == RequestUndrain) {\n			n.handle",
		promise: "10 a node that was asked to drain drains",
		tests:   []tests{in(".", "^TestRequestForNodeOutlivesSession$")}, says: "status of a node that was asked to drain",
	},
	{
		name: "engine: callers of a running statement wait when the session ends",
		file: "registry.go", from: "	s.answerLocked(err)\n	for _", to: "	_ = s.answerLocked\n	for _",
		promise: "no call waits without a bound",
		tests:   []tests{in(".", "^TestWorkIsAnsweredWhenSessionEndsDuringItsCall$")}, says: "the work waits for",
	},
	{
		name: "engine: a node without room accepts a role",
		file: "eligibility.go", from: "if !e.mayCampaignLocked() || e.withoutRoomLocked() != nil {", to: "if !e.mayCampaignLocked() {",
		promise: "7 Someone leads: a role is not handed over to a node that cannot take it",
		tests:   []tests{in(".", "^TestGroupRefusesHandOverWhileRoomIsKept$")}, says: "HandOver to a node whose room is kept",
	},
	{
		name: "engine: an attempt that fails stops the runs of other callers",
		file: "try.go", from: "	if e.runNumber != run.number || !e.trying {\n", to: "	if run.number == 0 {\n",
		promise: "an election campaigns until its own context ends",
		tests:   []tests{in(".", "^TestFailedTryAcquireStopsOnlyWhatItStarted$")}, says: "state of the run of another caller",
	},
	{
		name: "agent: an error of a call hides that a role is pending",
		file: "agent/server/arbiter.go", from: "		if err != nil && slices.ContainsFunc(attempts,", to: "		if err != nil && false && slices.ContainsFunc(attempts,",
		promise: "7 Someone leads: a node that gives up a role releases it",
		tests:   []tests{in("agent", "^TestPendingRoleIsReleasedAfterError$")}, says: "nvariant 7",
	},
	{
		name: "leaderhttp: a client that has not sent everything gets no answer",
		file: "leaderhttp/attempt.go", from: "		a.body.interrupt()\n", to: "		_ = a.body.interrupt\n",
		promise: "no request waits without a bound",
		tests:   []tests{in("leaderhttp", "^TestUnfinishedRequestIsAnswered$")}, says: "the client got no answer",
	},
	{
		name: "cron: a run that waited starts after a pause has returned",
		file: "cron/queries.go", from: "    ORDER BY name\n    FOR NO KEY UPDATE\n)\nUPDATE {runs} r\n", to: "    ORDER BY name\n    FOR KEY SHARE\n)\nUPDATE {runs} r\n",
		promise: "no run starts after a pause has returned",
		tests:   []tests{in("cron", "^TestPauseWaitsForAStartInFlight$")}, says: "the pause returned before the start in flight",
	},
	{
		name: "cron: a job starts before its claim is durable",
		file: "cron/queries.go", from: "ELSE 'on' END, true)", to: "ELSE 'off' END, true)",
		promise: "a tick whose job has started does not run again",
		tests:   []tests{in("cron", "^TestClaimedTickRunsOnceDespiteCrash$")}, says: "times; want once",
	},
	{
		name: "processor: code of the user that ends its goroutine is not noticed",
		file: "internal/usercode/usercode.go", from: "		reason = ErrExited\n", to: "		_ = ErrExited\n",
		promise: "7 Someone leads: code of the user ends no work in silence",
		tests:   []tests{in("internal/usercode", "^TestCallReturnsWhyAFunctionDidNotReturn$")}, says: "the reason is",
	},
	{
		name: "postgres: a request for a term ends the next one",
		file: "postgres/requests.go", from: " AND $6::bigint IN (0, l.term)\n", to: " AND $6::bigint IS NOT NULL\n",
		promise: "a step-down ends only the term that its operator has seen",
		tests:   []tests{in("postgres", "^TestSessionConformsToContract$/^a_request_for_a_term_spares_the_next_one$")}, says: "of a term that is over: got error",
	},
	{
		name: "postgres: requests for a node end with its session",
		file: "postgres/join.go", from: "(role <> '' OR NOT $2::boolean)", to: "(role <> '' OR NOT $2::boolean OR true)",
		promise: "a recorded request for a node is kept until the node has it",
		tests:   []tests{in("postgres", "^TestRequestsForNodeOutliveSession$")}, says: "the node takes",
	},
	{
		name: "postgres: requests for a node are removed before it has them",
		file: "postgres/queries.go", from: "    WHERE node_id = $1 AND role <> ''\n    RETURNING kind", to: "    WHERE node_id = $1\n    RETURNING kind",
		promise: "a recorded request for a node is kept until the node has it",
		tests:   []tests{in("postgres", "^TestRequestsForNodeOutliveSession$")}, says: "the node takes",
	},
	{
		name: "cron: a term abandons what it has claimed itself",
		file: "cron/queries.go", from: " AND NOT (n.own AND r.term = $5)", to: " AND NOT (n.own AND r.term = $5 AND false)",
		promise: "each claimed tick runs, also if the answer to the claim is lost",
		tests:   []tests{in("cron", "^TestUnknownClaimOutlivesChangeOfSchedule$")}, says: "and began",
	},
	{
		name: "webhook: what follows a switch of protocols is read",
		file: "outbox/webhook/response.go", from: "code != http.StatusSwitchingProtocols", to: "code != http.StatusContinue",
		promise: "a timeout bounds each request",
		tests:   []tests{in("outbox/webhook", "^TestSwitchedProtocolIsAnOutage$")}, says: "Publish does not return",
	},
	{
		name: "postgres: the transactions of the next term are terminated",
		file: "postgres/fencing.go", from: " AND t.term = b.term", to: " AND b.term IS NOT NULL",
		promise: "only transactions that delay the next term are terminated",
		tests:   []tests{in("postgres", "^TestTransactionsOfTheNextTermAreNotTerminated$")}, says: "a fenced transaction of the leader",
	},
	{
		name: "agent: a session that was lost never had its work returned",
		file: "agent/server/server.go", from: "if wakeup.Closed(s.ended) {", to: "if false {",
		promise: "the wait after a server change ends when all nodes are back",
		tests:   []tests{in("agent", "^TestAgentSaysThatWorkEndedWhileServerWasDown$")}, says: "has not said that the work of its session",
	},
	{
		name: "lease: a row that has changed is no commit of this session",
		file: "lease/acquire.go", from: "if now, ok := locked[t.role]; ok && now.sameTerm(t) {", to: "if _, ok := locked[t.role]; ok {",
		promise: "no role is held by a node that does not lead it",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendLateCommitKeepsNoRole$")}, says: "want the role, which no node leads",
	},
	{
		name: "engine: a node takes over from the node that took over from it",
		file: "prefer.go", from: "if e.disputesLocked(leader, score) || ", to: "if ",
		promise: "two nodes that disagree about who is preferred settle",
		tests:   []tests{in(".", "^TestNodesThatPreferThemselvesSettle$")}, says: "terms in a day; want 2 to",
	},
	{
		name: "postgres: the history has no vacancy of a hung server process",
		file: "postgres/join.go", from: "    WHERE incarnation = ANY ($7::int[]) OR pg_try", to: "    WHERE $7::int[] IS NULL OR pg_try",
		promise: "the history has the vacancy although the leader has opened a new session",
		tests:   []tests{in("postgres", "^TestVacancyOfHungServerProcessIsRecorded$")}, says: "the vacancy was",
	},
}
