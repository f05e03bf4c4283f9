package main

// postgresMutants break the protocol on PostgreSQL, most of them in its SQL.
var postgresMutants = []mutant{
	// Locks and terms.
	{
		name: "postgres: locking acquires only one role",
		file: "postgres/migrations/0001_functions.up.sql", from: "                held := held || wanted.role;\n", to: "                held := ARRAY[wanted.role];\n",
		promise: "a batch acquires each requested lock, and no other",
		tests:   []tests{in("postgres", "^TestSessionConformsToContract/many_roles_in_one_call$")},
	},
	{
		name: "postgres: a release is seen only by its notification",
		file: "postgres/queries.go", from: "SELECT nextval({releases:regclass}) > 0 AND pg_notify($10", to: "SELECT pg_notify($10",
		promise: "a lost notification costs at most a check interval",
		tests:   []tests{in("postgres", "^TestHeartbeatNoticesReleaseWithoutNotification$")},
	},
	{
		name: "postgres: heartbeats do not check the leaders' sessions",
		file: "postgres/session.go", from: "releases) || a.leadersEnded {", to: "releases) {",
		promise: "a lost notification costs at most a check interval",
		tests:   []tests{in("postgres", "^TestHeartbeatNoticesEndOfALeader$")},
	},
	{
		name: "postgres: an ended session counts as a leader",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE NOT {ended}(space, ARRAY[l.incarnation])", to: "WHERE space IS NOT NULL",
		promise: "7 Someone leads: a lock that a dying session has not freed yet is tried again after milliseconds",
		tests:   []tests{in("postgres", "^TestRoleOfAnEndedSessionIsTriedEachTime$|^TestRoleIsLedByLivingSessionOnly$")},
	},
	{
		name: "postgres: a session that has ended its term counts as the role's leader",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE t.role = m.role AND t.term > 0 AND t.ended_at IS NULL AND", to: "WHERE t.role = m.role AND t.term > 0 AND",
		promise: "7 Someone leads: a lock that is released after its term has ended is tried again after milliseconds",
		tests:   []tests{in("postgres", "^TestRoleIsLedByLivingSessionOnly$")},
	},
	{
		name: "postgres: the watch returns for each node that joins or ends",
		file: "postgres/migrations/0001_functions.up.sql", from: "clock_timestamp() >= moved_at + report_ms * interval '1 millisecond' THEN", to: "clock_timestamp() >= moved_at THEN",
		promise: "the work of a watch does not grow with the number of nodes that join or end at the same time",
		tests:   []tests{in("postgres", "^TestWatchReturnsOnceForManyMoves$")},
	},
	{
		name: "postgres: a term begins although its row is fenced",
		file: "postgres/fence.go", from: "FOR KEY SHARE OF t`), args", to: "`), args",
		promise: "3 Fenced writes are ordered",
		tests:   []tests{in("postgres", "^TestNextTermWaitsForFencedTransaction$")},
	},
	{
		name: "postgres: an ended term passes the fence",
		file: "postgres/fence.go", from: "WHERE t.ended_at IS NULL\n", to: "WHERE true\n",
		promise: "3 Fenced writes are ordered: a stream of fenced transactions of the old term ends",
		tests:   []tests{in("postgres", "^TestOverlappingFencedTransactionsDoNotBlockNextTerm$|^TestNextTermWaitsForFencedTransaction$")},
	},
	{
		name: "postgres: InTx does not fence",
		file: "postgres/intx.go", from: "	if err := b.fence(ctx, tx, marks); err != nil {", to: "	if err := b.fence(ctx, tx, marks); err != nil && false {",
		promise: "3 Fenced writes are ordered",
		tests:   []tests{in("postgres", "^TestFencedTransactionCommitsDuringItsTermOnly$|^TestInTxFencesWithTermOfNode$")},
	},
	{
		name: "postgres: a fenced role holds up the others",
		file: "postgres/migrations/0001_functions.up.sql", from: "            FOR UPDATE SKIP LOCKED\n", to: "            FOR UPDATE\n",
		promise: "one slow role delays no other",
		tests:   []tests{in("postgres", "^TestLockedRowDelaysOnlyItsRole$|^TestNextTermWaitsForFencedTransaction$")},
	},
	{
		name: "postgres: the kept plan of a take reads all roles",
		file: "postgres/migrations/0001_functions.up.sql", from: "SET enable_seqscan = off\n", to: "SET enable_seqscan = on\n",
		promise: "the roles of other nodes do not delay a failover",
		tests:   []tests{in("postgres", "^TestTakeReadsRowsByKeyAfterTheTableHasGrown$")},
	},
	{
		name: "postgres: the kept plan of a take joins all roles",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE t.role = ANY (ARRAY[p.role])\n", to: "WHERE t.role = p.role\n",
		promise: "the roles of other nodes do not delay a failover",
		tests:   []tests{in("postgres", "^TestTakeReadsRowsByKeyAfterTheTableHasGrown$")},
	},
	{
		name: "postgres: a term in the history prevents the next one",
		file: "postgres/migrations/0001_functions.up.sql", from: "            AND (SELECT h.term FROM {history} h WHERE h.role = p.role AND h.term = p.term) IS NULL\n", to: "            AND (SELECT h.term FROM {history} h WHERE h.role = p.role AND h.term = p.term) IS NOT NULL\n",
		promise: "7 Someone leads: also if the history has the term already",
		tests:   []tests{in("postgres", "^TestTermBeginsIfTheHistoryHasItsPredecessor$")},
	},
	{
		name: "postgres: fenced transactions are never ended",
		file: "postgres/blocked.go", from: "if now-since >= s.opening.Timing.FenceTimeout {", to: "if now-since >= 1000*s.opening.Timing.FenceTimeout {",
		promise: "7 Someone leads: a fenced transaction is ended after FenceTimeout",
		tests:   []tests{in("postgres", "^TestStoppedFencedTransactionsAreTerminated$")},
	},
	{
		name: "postgres: one of several fenced transactions is ended",
		file: "postgres/fencing.go", from: "append(found.transactions, members...)", to: "append(found.transactions, members[:min(1, len(members))]...)",
		promise: "7 Someone leads: all fenced transactions of the old term are ended, not only one",
		tests:   []tests{in("postgres", "^TestOneRoundTerminatesAllFencedTransactions$")},
	},
	{
		name: "postgres: nothing settles",
		file: "postgres/reunion.go", from: "		settle = timing.Settle\n", to: "		settle = 0 * timing.Settle\n",
		promise: "a term whose predecessor ended uncleanly waits for Settle",
		tests:   []tests{in("postgres", "^TestTermSettlesAfterUncleanEnd$")},
	},
	{
		name: "postgres: a reserved role is acquired by any node",
		file: "postgres/migrations/0001_functions.up.sql", from: "            IF wanted.left_ms > 0 THEN\n", to: "            IF wanted.left_ms < 0 THEN\n",
		promise: "a reserved role is left to its target",
		tests:   []tests{in("postgres", "^TestReservedRoleIsTriedByItsTargetAlone$")},
	},
	{
		name: "postgres: the end of a term is not recorded",
		file: "postgres/queries.go", from: "WHERE t.role = c.role AND t.term = c.term AND t.node_id = $6 AND t.ended_at IS NULL\n    RETURNING t.role\n", to: "WHERE t.role = c.role AND t.term = c.term AND t.node_id = $6 AND t.ended_at IS NOT NULL\n    RETURNING t.role\n",
		promise: "a resignation is recorded before the lock is free",
		tests:   []tests{in("postgres", "^TestResignationFreesTheRole$|^TestHistoryListsEveryTermOnce$|^TestSessionConformsToContract/a_release_wakes_candidates$")},
	},
	{
		name: "postgres: a term begins under a key that is no longer the recorded one",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE t.role = h.role AND t.lock_key = h.lock_key\n", to: "WHERE t.role = h.role\n",
		promise: "1 One leader: one name has one key, also while it changes",
		tests:   []tests{in("postgres", "^TestCandidateWithOldKeyCannotLead$")},
	},
	{
		name: "postgres: the key of a role changes while a session holds its lock",
		file: "postgres/migrations/0001.up.sql", from: "                free := free AND CASE\n", to: "                free := free OR CASE\n",
		promise: "1 One leader: a new key needs the old lock and the new one",
		tests:   []tests{in("postgres", "^TestRekeyIsRefused$|^TestRoleRowCannotBeChangedDuringSessions$")},
	},

	// Heartbeats.
	{
		name: "postgres: a newer session does not end the older one",
		file: "postgres/queries.go", from: "WHERE id = $1 AND incarnation = $2 AND status <> 'dead'\nRETURNING\n", to: "WHERE id = $1 AND $2::int > 0 AND status <> 'dead'\nRETURNING\n",
		promise: "1 One leader: a heartbeat proves that the session still owns the node",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsNewerSession$")},
	},
	{
		name: "postgres: the session of a node marked dead continues",
		file: "postgres/queries.go", from: "WHERE id = $1 AND incarnation = $2 AND status <> 'dead'\nRETURNING\n", to: "WHERE id = $1 AND incarnation = $2\nRETURNING\n",
		promise: "a node that was marked dead opens a new session",
		tests:   []tests{in("postgres", "^TestHeartbeatFailsAfterNodeWasMarkedDead$")},
	},
	{
		name: "postgres: a session that was reset is trusted",
		file: "postgres/session.go", from: "	case a.incarnation != fmt.Sprint(s.incarnation):\n", to: "	case a.incarnation == \"reset\":\n",
		promise: "1 One leader: DISCARD ALL on the session is noticed at the next heartbeat",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsInterference$")},
	},
	{
		name: "postgres: lost locks are not detected",
		file: "postgres/session.go", from: "	case counting && a.locks[0] != len(s.keys):\n", to: "	case counting && a.locks[0] < 0:\n",
		promise: "1 One leader: pg_advisory_unlock_all is noticed at the eighth heartbeat",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsInterference$")},
	},
	{
		name: "postgres: a wait ends before all nodes are back",
		file: "postgres/queries.go", from: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text)\n    THEN", to: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text) AND status <> 'dead' AND false\n    THEN",
		promise: "1 One leader: after a restart a node that is not back may still trust its term",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")},
	},
	{
		name: "postgres: nodes that were found dead are not waited for",
		file: "postgres/queries.go", from: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text)\n    THEN", to: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text) AND status <> 'dead'\n    THEN",
		promise: "1 One leader: after a restart dead and living nodes look the same",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")},
	},
	{
		name: "postgres: another process with the same id is back",
		file: "postgres/join.go", from: "        WHEN n.incarnation = ANY ($8) THEN n.trust_until\n", to: "        WHEN true THEN n.trust_until\n",
		promise: "1 One leader: a node's id does not prove which process it is",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")},
	},
	{
		name: "postgres: every promoted replica is complete",
		file: "postgres/reunion.go", from: "return s.opening.Timing.SynchronousFailover && ", to: "return ",
		promise: "1 One leader: an asynchronous replica may lack nodes",
		tests:   []tests{in("postgres", "^TestReunionAfterPromotionNeedsSynchronousFailover$")},
	},
	{
		name: "postgres: a dead node is forgotten while it may trust its session",
		file: "postgres/members.go", from: "status = 'dead' AND ` + trustOver + ` RETURNING *", to: "status = 'dead' RETURNING *",
		promise: "1 One leader: after a restart the registry shows whom to wait for",
		tests:   []tests{in("postgres", "^TestForgetWaitsForTheLease$")},
	},
	{
		name: "postgres: a lost term is waited for as long as the last recorded one",
		file: "postgres/reunion.go", from: "timing.Lease, row.lease, s.server.longest, timing.FailoverWait)", to: "timing.Lease, row.lease, timing.FailoverWait)",
		promise: "1 One leader: a crash may forget who led",
		tests:   []tests{in("postgres", "^TestNextTermWaitsForLeaderOfLostBegin$")},
	},
	{
		name: "postgres: a lost term does not settle",
		file: "postgres/reunion.go", from: " || s.crashedSince(row) {\n", to: " || s.crashedSince(row) && false {\n",
		promise: "a term whose predecessor ended uncleanly waits for Settle",
		tests:   []tests{in("postgres", "^TestTermSettlesAfterLostBegin$")},
	},
	{
		name: "postgres: a lost term is not recorded",
		file: "postgres/terms.go", from: "s.backend.recent.add(s.opening.Node.ID, s.incarnation, some)", to: "_ = some",
		promise: "the history has every term that a node led",
		tests:   []tests{in("postgres", "^TestNextTermWaitsForLeaderOfLostBegin$")},
	},
	{
		name: "postgres: the begin of a term waits for the replica",
		file: "postgres/migrations/0001_functions.up.sql", from: "    PERFORM set_config('synchronous_commit', 'off', true);\n", to: "    PERFORM set_config('synchronous_commit', 'on', true);\n",
		promise: "7 Someone leads: the begin of a term waits for no disk and no replica",
		tests:   []tests{in("postgres", "^TestTermBeginsWithoutReplica$")},
	},
	{
		name: "postgres: a canceled wait for the replica is a success",
		file: "postgres/session.go", from: "	if err := s.warningAsError(stmtHeartbeat); err != nil {\n", to: "	if err := s.warningAsError(stmtHeartbeat); err != nil && false {\n",
		promise: "1 One leader: a heartbeat that did not reach the synchronous standby is a failure",
		tests:   []tests{in("postgres", "^TestCanceledWaitForReplicaIsNoSuccess$")},
	},
	{
		name: "postgres: statements are sent without trust",
		file: "postgres/session.go", from: "	if !s.opening.MaySend() {\n		return fmt.Errorf(\"%w: %s was not sent", to: "	if false {\n		return fmt.Errorf(\"%w: %s was not sent",
		promise: "7 Someone leads: a session whose trust has ended sends nothing that would restart the server's timer",
		tests:   []tests{in("postgres", "^TestNothingIsSentWithoutTrust$")},
	},
	{
		name: "postgres: a request for an earlier term is obeyed",
		file: "postgres/session.go", from: "held != nil && held.term == r.term {", to: "held != nil && held.term != 0 {",
		promise: "a request is for the leader that it was made for",
		tests:   []tests{in("postgres", "^TestRequestsReachLeaderAndNode$|^TestSessionConformsToContract/a_request")},
	},

	// The lease and the reaper.
	{
		name: "postgres: the server does not end silent sessions",
		file: "internal/pgdial/settings.go", from: "of(func(l Limits) time.Duration { return l.Idle })", to: "of(func(l Limits) time.Duration { return 100 * l.Idle })",
		promise: "7 Someone leads: the server ends a session that was silent for one lease",
		tests:   []tests{in("postgres", "^TestServerEndsSilentSession$")},
	},
	{
		name: "postgres: TCP frees the locks before the lease has passed",
		file: "internal/pgdial/settings.go", from: "of(func(l Limits) time.Duration { return 2 * l.Lease })", to: "of(func(l Limits) time.Duration { return l.Lease / 2 })",
		promise: "1 One leader: TCP does not free a lock while trust runs",
		tests:   []tests{in("postgres", "^TestSettingsAreNotInherited$")},
	},
	{
		name: "postgres: a node stays with a host on which it cannot open a session",
		file: "internal/pgdial/dialer.go", from: "	hosts = last(hosts, func(t target) bool { return t.name() == avoided })\n", to: "	_ = avoided\n",
		promise: "7 Someone leads: an old primary that never commits is left",
		tests:   []tests{in("internal/pgdial", "^TestAvoidedHostIsTriedLast$")},
	},
	{
		name: "postgres: an acknowledged term can be lost in a crash",
		file: "internal/pgdial/settings.go", from: "\"synchronous_commit\", fixed(\"on\")", to: "\"synchronous_commit\", fixed(\"off\")",
		promise: "2 Terms grow: heartbeats and terms are durable whatever a role's setting says",
		tests:   []tests{in("postgres", "^TestSettingsAreNotInherited$")},
	},
	{
		name: "postgres: the reaper at half a lease",
		file: "postgres/queries.go", from: "n.last_heartbeat + (n.lease_ms + $2::int) * interval '1 millisecond' < clock_timestamp()\n    END`,", to: "n.last_heartbeat + (n.lease_ms / 2 + $2::int) * interval '1 millisecond' < clock_timestamp()\n    END`,",
		promise: "1 One leader: no session is ended before its lease has passed",
		tests:   []tests{in("postgres", "^TestReaperSparesTrustedSession$")}, says: "nvariant 1",
	},
	{
		name: "postgres: the reaper does not reap",
		file: "postgres/queries.go", from: "coalesce(n.name, ''), l.pid, pg_terminate_backend(l.pid)\n", to: "coalesce(n.name, ''), l.pid, true\n",
		promise: "7 Someone leads: a stuck session of a silent node is ended",
		tests:   []tests{in("postgres", "^TestReaperEndsStuckSession$")},
	},
	{
		name: "postgres: no session reaps while the watch is down",
		file: "postgres/reaper.go", from: "	if !s.watch.down.Load() {\n", to: "	if true || !s.watch.down.Load() {\n",
		promise: "7 Someone leads: a stuck session is ended also while the successor's watch is down",
		tests:   []tests{in("postgres", "^TestSessionReapsWhileWatchIsDown$")},
	},
	{
		name: "postgres: heartbeats do not look for silent nodes",
		file: "postgres/session.go", from: "	s.silenceSeen = a.silence\n", to: "	s.silenceSeen = false\n",
		promise: "7 Someone leads: a stuck session is ended also while the successor's watch is silent",
		tests:   []tests{in("postgres", "^TestStuckSessionIsTerminatedAlthoughWatchFallsSilent$")},
	},
	{
		name: "postgres: heartbeats look at one node only",
		file: "postgres/queries.go", from: "            LIMIT 3\n        ) p\n", to: "            LIMIT 1\n        ) p\n",
		promise: "7 Someone leads: a stuck session is ended also while the successor's node is stopped",
		tests:   []tests{in("postgres", "^TestStuckSessionIsTerminatedAlthoughWatchFallsSilent$")},
	},
	{
		name: "postgres: an earlier session is left to the watch",
		file: "postgres/reaper.go", from: "	due := len(s.staleSession.dueNow()) > 0\n", to: "	due := false\n",
		promise: "7 Someone leads: a stuck earlier session is ended also while the watch is silent",
		tests:   []tests{in("postgres", "^TestStuckSessionIsTerminatedAlthoughWatchFallsSilent$")},
	},
	{
		name: "postgres: a death is seen only by its notification",
		file: "postgres/queries_watch.go", from: "SELECT nextval({membership:regclass}), nextval({releases:regclass})`,", to: "SELECT nextval({membership:regclass})`,",
		promise: "a lost notification costs at most a check interval",
		tests:   []tests{in("postgres", "^TestHeartbeatNoticesDeathBeforeTheTerm$")},
	},
	{
		name: "postgres: every node looks for sessions without a row",
		file: "postgres/queries_watch.go", from: "LIMIT 3) older\n    ) < 3\n", to: "LIMIT 3) older\n    ) <= 3\n",
		promise: "8 Idle is cheap: the locks read do not grow with the square of the nodes",
		tests:   []tests{in("postgres", "^TestThreeOldestNodesLookForSessionsWithoutRow$")},
	},
	{
		name: "postgres: sessions without roles count locks",
		file: "postgres/session.go", from: "%auditBeats == 0 && len(s.heldRoles) > 0\n", to: "%auditBeats == 0\n",
		promise: "8 Idle is cheap: the locks read do not grow with the square of the nodes",
		tests:   []tests{in("postgres", "^TestOnlySessionsWithRolesCountLocks$")},
	},

	// The ring.
	{
		name: "postgres: the watch connection is not opened again",
		file: "postgres/ring.go", from: "	const first, longest = 10 * time.Millisecond, 2 * time.Second\n", to: "	const first, longest = 10 * time.Minute, 20 * time.Minute\n",
		promise: "7 Someone leads: a lost watch connection is opened again",
		tests:   []tests{in("postgres", "^TestWatchConnectionIsOpenedAgain$")},
	},

	// Opening.
	{
		name: "postgres: two servers behind one address are accepted",
		file: "postgres/server.go", from: "	case !session.start.Equal(watch.start):\n", to: "	case false:\n",
		promise: "1 One leader: both connections reach the same server",
		tests:   []tests{in("postgres", "^TestRefuse")},
	},
	{
		name: "postgres: a pooler is accepted",
		file: "postgres/server.go", from: "	case session.pooled || watch.pooled:\n", to: "	case session.pooled && !session.pooled:\n",
		promise: "1 One leader: poolers are refused",
		tests:   []tests{in("postgres", "^TestRefuse")},
	},
	{
		name: "postgres: a server without locks is accepted",
		file: "postgres/server.go", from: "	case session.locked && watch.locked:\n", to: "	case session.locked && !session.locked:\n",
		promise: "1 One leader: a server whose locks do nothing is refused",
		tests:   []tests{in("postgres", "^TestRefuse")},
	},
	{
		name: "postgres: an incarnation is used twice",
		file: "postgres/open.go", from: "		if s.incarnation > present {\n", to: "		if s.incarnation > 0 {\n",
		promise: "incarnations grow, also on a replica that lost the last values of the sequence",
		tests:   []tests{in("postgres", "^TestIncarnationsSkipRowsOfRestoredServer$")},
	},

	// Fences, resignations and deaths.
	{
		name: "postgres: the fence takes any term of the node",
		file: "postgres/fence.go", from: "ON t.role = held.role AND t.term = held.term AND t.node_id", to: "ON t.role = held.role AND held.term > 0 AND t.node_id",
		promise: "3 Fenced writes are ordered: a term of the same node that has ended passes no fence",
		tests:   []tests{in("postgres", "^TestFenceRejectsEarlierTermOfSameNode$")},
	},
	{
		name: "postgres: a function commits its own transaction",
		file: "postgres/intx.go", from: "func (fencedTx) Commit(context.Context) error { return errOwnCommit }", to: "func (t fencedTx) Commit(ctx context.Context) error { return t.Tx.Commit(ctx) }",
		promise: "3 Fenced writes are ordered: nothing is committed before the fence",
		tests:   []tests{in("postgres", "^TestInTxCommitsOnlyItself$")},
	},
	{
		name: "postgres: a transaction that was ended is fenced",
		file: "postgres/fence.go", from: "status != 'T' {", to: "status == 0 {",
		promise: "3 Fenced writes are ordered: a function that ends its transaction gets an error",
		tests:   []tests{in("postgres", "^TestInTxCommitsOnlyItself$")},
	},
	{
		name: "postgres: the fence names no schema",
		file: "postgres/fence.go", from: "FROM {terms} t\n", to: "FROM tenure_terms t\n",
		promise: "3 Fenced writes are ordered: the fence reads the table of its installation",
		tests:   []tests{in("postgres", "^TestFenceReadsItsOwnSchema$")},
	},
	{
		name: "postgres: the session searches in other schemas",
		file: "internal/pgdial/settings.go", from: "\"search_path\", fixed(\"pg_catalog\")", to: "\"search_path\", fixed(\"public\")",
		promise: "functions and operators are those of PostgreSQL",
		tests:   []tests{in("postgres", "^TestOperatorsOfOtherSchemasAreNotUsed$")},
	},
	{
		name: "postgres: a resignation is not announced",
		file: "postgres/queries.go", from: "IS NOT NULL WHERE $10::text <> ''`", to: "IS NOT NULL WHERE $10::text = ''`",
		promise: "7 Someone leads: a vacant role is filled in milliseconds after a resignation",
		tests:   []tests{in("postgres", "^TestResignationFreesTheRole$")},
	},
	{
		name: "postgres: a resignation keeps the lock",
		file: "postgres/queries.go", from: "SELECT pg_advisory_unlock(k) FROM written, unnest($7::bigint[]) k\n", to: "SELECT k IS NOT NULL FROM written, unnest($7::bigint[]) k\n",
		promise: "7 Someone leads: a resignation frees the lock",
		tests:   []tests{in("postgres", "^TestResignationFreesTheRole$")},
	},
	{
		name: "postgres: a resignation in steps is not announced",
		file: "postgres/release.go", from: "	err = s.query(stmtReleased, nil, s.backend.names.channel())\n", to: "	err = nil\n",
		promise: "7 Someone leads: a vacant role is filled in milliseconds after a resignation, also if its record cannot be written",
		tests:   []tests{in("postgres", "^TestRoleIsReleasedWhenRecordFails$")},
	},
	{
		name: "postgres: a death is not announced",
		file: "postgres/queries_watch.go", from: "SELECT name, pg_notify($2, id::text) FROM dead`", to: "SELECT name, $2::text FROM dead`",
		promise: "7 Someone leads: the node that sees a death notifies all candidates",
		tests:   []tests{in("postgres", "^TestCrashIsNoticedInMilliseconds$")},
	},
	{
		name: "postgres: the roles of a forgotten node are announced before its session has ended",
		file: "postgres/members.go", from: "if err := notify(); err != nil || !ended {\n", to: "if err := notify(); err != nil || ended {\n",
		promise: "7 Someone leads: a node that is forgotten frees its roles",
		tests:   []tests{in("postgres", "^TestForgettingNotifiesAfterEndOfSession$")},
	},
	{
		name: "pgdial: an address stays a server for ever",
		file: "internal/pgdial/dialer.go", from: "			delete(d.servers, address)\n", to: "			delete(d.servers, network)\n",
		promise: "a pooler is refused, also if it takes the place of a server",
		tests:   []tests{in("internal/pgdial", "^TestPgpoolIsAskedForAgain$")},
	},
	{
		name: "pgdial: a session does not look for Pgpool-II",
		file: "internal/pgdial/check.go", from: "	if !always && d.isServer(remote) {\n", to: "	if d.isServer(remote) {\n",
		promise: "a pooler is refused, also if it takes the place of a server",
		tests:   []tests{in("internal/pgdial", "^TestPgpoolIsAskedForAgain$")},
	},

	// Reading the registry.
	{
		name: "postgres: a notification without a payload changes no node",
		file: "postgres/changed_nodes.go", from: "		c.any, c.ids = true, nil\n", to: "		c.any, c.ids = false, nil\n",
		promise: "a change that a node of another version reports is seen",
		tests:   []tests{in("postgres", "^TestRefreshHonorsPayload$")},
	},
	{
		name: "postgres: a notification about roles changes every node",
		file: "postgres/changed_nodes.go", from: "	if payload == rolesOnly {\n", to: "	if payload == rolesOnly && false {\n",
		promise: "the registry is read only after changes of nodes",
		tests:   []tests{in("postgres", "^TestRefreshHonorsPayload$")},
	},
	{
		name: "postgres: a death names no node",
		file: "postgres/queries_watch.go", from: "SELECT name, pg_notify($2, id::text) FROM dead`", to: "SELECT name, pg_notify($2, '` + rolesOnly + `') FROM dead`",
		promise: "every member learns of a death in milliseconds",
		tests:   []tests{in("postgres", "^TestRefreshReadsReportedNodes$")},
	},
	{
		name: "postgres: a refresh keeps the nodes that left",
		file: "postgres/members.go", from: "return slices.Contains(ids, m.ID) })", to: "return slices.Contains(ids, m.ID) && false })",
		promise: "every member sees that a node left",
		tests:   []tests{in("postgres", "^TestRefreshReadsReportedNodes$")},
	},
	{
		name: "postgres: a session takes a report of a request for one of a node",
		file: "postgres/session.go", from: "if !aboutNode {", to: "if !aboutNode && n.Payload == anything {",
		promise: "a request reaches its node immediately",
		tests:   []tests{in("postgres", "^TestRequestsAreReadWhenReported$")},
	},
	{
		name: "postgres: the watch tries the locks of all nodes",
		file: "postgres/queries_watch.go", from: "WHERE CASE WHEN n.status = 'dead' AND n.id <> $1 THEN NOT pg_try_advisory_xact_lock_shared($3::int, n.incarnation) END`", to: "WHERE n.status = 'dead' AND n.id <> $1 AND NOT pg_try_advisory_xact_lock_shared($3::int, n.incarnation)`",
		promise: "what a watch does grows with the dead nodes and not with all",
		tests:   []tests{in("postgres", "^TestWatchTriesOnlyLocksOfTheDead$")},
	},
	{
		name: "cluster: reports keep the view from reading all nodes",
		file: "cluster/view.go", from: "v.clock.Now().Mono-v.readAt < v.reread\n", to: "v.clock.Now().Mono-v.latest < v.reread\n",
		promise: "a change whose report was lost is seen",
		tests:   []tests{in("cluster", "^TestViewRefreshesAfterReports$")},
	},
	{
		name: "cluster: a view keeps the labels that it read first",
		file: "cluster/node.go", from: "if before != nil && sameSets(m, before) {", to: "if before != nil {",
		promise: "every member sees a changed description",
		tests:   []tests{in("cluster", "^TestViewSharesOnlyWhatHasNotChanged$")},
	},
	{
		name: "cluster: a member reads all nodes again when it begins to follow",
		file: "cluster/view.go", from: "for reported := true;", to: "for reported := false;",
		promise: "a join reads the registry once",
		tests:   []tests{in("cluster", "^TestViewReadsNewRowsFirstAfterRead$")},
	},
	{
		name: "cluster: a planned move that crosses another one stays as long as an operator's",
		file: "cluster/spread_offer.go", from: "now+shortAdoption*interval", to: "now+longAdoption*interval",
		promise: "the shares of a spread are equal again soon",
		tests:   []tests{in("cluster", "^TestMemberKeepsRolesOfOperatorsLonger$")},
	},
}
