package main

// postgresMutants break the protocol on PostgreSQL, most of them in its SQL.
var postgresMutants = []mutant{
	// Locks and terms.
	{
		name: "postgres: locking acquires only one role",
		file: "postgres/migrations/0001_functions.up.sql", from: "                held := held || wanted.role;\n", to: "                held := ARRAY[wanted.role];\n",
		promise: "a batch acquires each requested lock, and no other",
		tests:   []tests{in("postgres", "^TestSessionConformsToContract/many_roles_in_one_call$")}, says: "want OutcomeGranted",
	},
	{
		name: "postgres: a release is seen only by its notification",
		file: "postgres/queries.go", from: "SELECT nextval({releases:regclass}) > 0 AND pg_notify($10", to: "SELECT pg_notify($10",
		promise: "a lost notification costs at most a check interval",
		tests:   []tests{in("postgres", "^TestHeartbeatNoticesReleaseWithoutNotification$")}, says: "the heartbeat reported no change",
	},
	{
		name: "postgres: heartbeats do not check the leaders' sessions",
		file: "postgres/heartbeat.go", from: "releases) || a.leadersEnded {", to: "releases) {",
		promise: "a lost notification costs at most a check interval",
		tests:   []tests{in("postgres", "^TestHeartbeatNoticesEndOfALeader$")}, says: "the heartbeat reported no change",
	},
	{
		name: "postgres: an ended session counts as a leader",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE NOT {ended}(space, ARRAY[l.incarnation])", to: "WHERE space IS NOT NULL",
		promise: "7 Someone leads: a lock that a dying session has not freed yet is tried again after milliseconds",
		tests:   []tests{in("postgres", "^TestRoleOfAnEndedSessionIsTriedEachTime$|^TestRoleIsLedByLivingSessionOnly$")}, says: "roles count as led; want none",
	},
	{
		name: "postgres: a session that has ended its term counts as the role's leader",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE t.role = m.role AND t.term > 0 AND t.ended_at IS NULL AND", to: "WHERE t.role = m.role AND t.term > 0 AND",
		promise: "7 Someone leads: a lock that is released after its term has ended is tried again after milliseconds",
		tests:   []tests{in("postgres", "^TestRoleIsLedByLivingSessionOnly$")}, says: "want only Held",
	},
	{
		name: "postgres: a silent session that was just terminated counts as the role's leader",
		file: "postgres/migrations/0001_functions.up.sql", from: "AND n.last_heartbeat + n.lease_ms * interval '1 millisecond' > clock_timestamp()\n", to: "\n",
		promise: "7 Someone leads: a lock that a terminated session has not freed yet is tried again after milliseconds",
		tests:   []tests{in("postgres", "^TestRoleOfTerminatedSessionIsTriedAgainSoon$")}, says: "want only Held",
	},
	{
		name: "postgres: the watch returns for each node that joins or ends",
		file: "postgres/migrations/0001_functions.up.sql", from: "clock_timestamp() >= moved_at + report_ms * interval '1 millisecond' THEN", to: "clock_timestamp() >= moved_at THEN",
		promise: "the work of a watch does not grow with the number of nodes that join or end at the same time",
		tests:   []tests{in("postgres", "^TestWatchReturnsOnceForManyMoves$")}, says: "want moved and",
	},
	{
		name: "postgres: a cancellation between the blocks of the watch function ends its connection",
		file: "postgres/ring.go", from: "if w.waking.end() && sqlstate.Has(err, sqlstate.QueryCanceled) {", to: "if w.waking.end() && false {",
		promise: "7 Someone leads: the oldest node watches while nodes join",
		tests:   []tests{in("postgres", "^TestCanceledCallKeepsTheWatch$")}, says: "watch connections failed, want none",
	},
	{
		name: "postgres: a term begins although its row is fenced",
		file: "postgres/fence.go", from: "FOR KEY SHARE OF t`), args", to: "`), args",
		promise: "3 Fenced writes are ordered",
		tests:   []tests{in("postgres", "^TestNextTermWaitsForFencedTransaction$")}, says: "want it waiting for the transaction",
	},
	{
		name: "postgres: an ended term passes the fence",
		file: "postgres/fence.go", from: "WHERE t.ended_at IS NULL\n", to: "WHERE true\n",
		promise: "3 Fenced writes are ordered: a stream of fenced transactions of the old term ends",
		tests:   []tests{in("postgres", "^TestOverlappingFencedTransactionsDoNotBlockNextTerm$|^TestNextTermWaitsForFencedTransaction$")}, says: "a later transaction of the term that was closed",
	},
	{
		name: "postgres: InTx does not fence",
		file: "postgres/intx.go", from: "	if err := b.fence(ctx, tx, marks); err != nil {", to: "	if err := b.fence(ctx, tx, marks); err != nil && false {",
		promise: "3 Fenced writes are ordered",
		tests:   []tests{in("postgres", "^TestFencedTransactionCommitsDuringItsTermOnly$|^TestInTxFencesWithTermOfNode$")}, says: "a transaction that outlived its term",
	},
	{
		name: "postgres: a fenced role holds up the others",
		file: "postgres/migrations/0001_functions.up.sql", from: "            FOR UPDATE SKIP LOCKED\n", to: "            FOR UPDATE\n",
		promise: "one slow role delays no other",
		tests:   []tests{in("postgres", "^TestLockedRowDelaysOnlyItsRole$|^TestNextTermWaitsForFencedTransaction$")}, says: "want it waiting, immediately",
	},
	{
		name: "postgres: the kept plan of a take reads all roles",
		file: "postgres/migrations/0001_functions.up.sql", from: "SET enable_seqscan = off\n", to: "SET enable_seqscan = on\n",
		promise: "the roles of other nodes do not delay a failover",
		tests:   []tests{in("postgres", "^TestTakeReadsRowsByKeyAfterTheTableHasGrown$")}, says: "rows were read; want",
	},
	{
		name: "postgres: the kept plan of a take joins all roles",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE t.role = ANY (ARRAY[p.role])\n", to: "WHERE t.role = p.role\n",
		promise: "the roles of other nodes do not delay a failover",
		tests:   []tests{in("postgres", "^TestTakeReadsRowsByKeyAfterTheTableHasGrown$")}, says: "rows were read; want",
	},
	{
		name: "postgres: a term in the history prevents the next one",
		file: "postgres/migrations/0001_functions.up.sql", from: "            AND (SELECT h.term FROM {history} h WHERE h.role = p.role AND h.term = p.term) IS NULL\n", to: "            AND (SELECT h.term FROM {history} h WHERE h.role = p.role AND h.term = p.term) IS NOT NULL\n",
		promise: "7 Someone leads: also if the history has the term already",
		tests:   []tests{in("postgres", "^TestTermBeginsIfTheHistoryHasItsPredecessor$")}, says: "want it granted",
	},
	{
		name: "postgres: fenced transactions are never ended",
		file: "postgres/acquire.go", from: "if now-since >= s.opening.Timing.FenceTimeout {", to: "if now-since >= 1000*s.opening.Timing.FenceTimeout {",
		promise: "7 Someone leads: a fenced transaction is ended after FenceTimeout",
		tests:   []tests{in("postgres", "^TestStoppedFencedTransactionsAreTerminated$")}, says: "was not won in",
	},
	{
		name: "postgres: one of several fenced transactions is ended",
		file: "postgres/fencing.go", from: "append(found.transactions, members...)", to: "append(found.transactions, members[:min(1, len(members))]...)",
		promise: "7 Someone leads: all fenced transactions of the old term are ended, not only one",
		tests:   []tests{in("postgres", "^TestOneRoundTerminatesAllFencedTransactions$")}, says: "one round terminated",
	},
	{
		name: "postgres: nothing settles",
		file: "postgres/reunion.go", from: "		settle = timing.Settle\n", to: "		settle = 0 * timing.Settle\n",
		promise: "a term whose predecessor ended uncleanly waits for Settle",
		tests:   []tests{in("postgres", "^TestTermSettlesAfterUncleanEnd$")}, says: "the term may begin",
	},
	{
		name: "postgres: a reserved role is acquired by any node",
		file: "postgres/migrations/0001_functions.up.sql", from: "            IF wanted.left_ms > 0 THEN\n", to: "            IF wanted.left_ms < 0 THEN\n",
		promise: "a reserved role is left to its target",
		tests:   []tests{in("postgres", "^TestReservedRoleIsTriedByItsTargetAlone$")}, says: "want it busy",
	},
	{
		name: "postgres: the end of a term is not recorded",
		file: "postgres/queries.go", from: "WHERE t.role = c.role AND t.term = c.term AND t.node_id = $6 AND t.ended_at IS NULL\n    RETURNING t.role\n", to: "WHERE t.role = c.role AND t.term = c.term AND t.node_id = $6 AND t.ended_at IS NOT NULL\n    RETURNING t.role\n",
		promise: "a resignation is recorded before the lock is free",
		tests:   []tests{in("postgres", "^TestResignationFreesTheRole$"), in("postgres", "^TestHistoryListsEveryTermOnce$|^TestSessionConformsToContract/a_release_wakes_candidates$")}, says: "the first term ended with reason",
	},
	{
		name: "postgres: a term begins under a key that is no longer the recorded one",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHERE t.role = h.role AND t.lock_key = h.lock_key\n", to: "WHERE t.role = h.role\n",
		promise: "1 One leader: one name has one key, also while it changes",
		tests:   []tests{in("postgres", "^TestCandidateWithOldKeyCannotLead$")}, says: "want ErrKeyMismatch",
	},
	{
		name: "postgres: the key of a role changes while a session holds its lock",
		file: "postgres/migrations/0001.up.sql", from: "                free := free AND CASE\n", to: "                free := free OR CASE\n",
		promise: "1 One leader: a new key needs the old lock and the new one",
		tests:   []tests{in("postgres", "^TestRekeyIsRefused$|^TestRoleRowCannotBeChangedDuringSessions$")}, says: "want it refused",
	},

	// Heartbeats.
	{
		name: "postgres: a newer session does not end the older one",
		file: "postgres/queries.go", from: "WHERE id = $1 AND incarnation = $2 AND status <> 'dead'\nRETURNING\n", to: "WHERE id = $1 AND $2::int > 0 AND status <> 'dead'\nRETURNING\n",
		promise: "1 One leader: a heartbeat proves that the session still owns the node",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsNewerSession$")}, says: "want it superseded",
	},
	{
		name: "postgres: the session of a node marked dead continues",
		file: "postgres/queries.go", from: "WHERE id = $1 AND incarnation = $2 AND status <> 'dead'\nRETURNING\n", to: "WHERE id = $1 AND incarnation = $2\nRETURNING\n",
		promise: "a node that was marked dead opens a new session",
		tests:   []tests{in("postgres", "^TestHeartbeatFailsAfterNodeWasMarkedDead$")}, says: "want it superseded",
	},
	{
		name: "postgres: a session that was reset is trusted",
		file: "postgres/heartbeat.go", from: "	case a.incarnation != fmt.Sprint(s.incarnation):\n", to: "	case a.incarnation == \"reset\":\n",
		promise: "1 One leader: DISCARD ALL on the session is noticed at the next heartbeat",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsInterference$")}, says: "want the session lost",
	},
	{
		name: "postgres: lost locks are not detected",
		file: "postgres/heartbeat.go", from: "	case counting && a.locks[0] != len(s.keys):\n", to: "	case counting && a.locks[0] < 0:\n",
		promise: "1 One leader: pg_advisory_unlock_all is noticed at the eighth heartbeat",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsInterference$")}, says: "want the session lost",
	},
	{
		name: "postgres: a wait ends before all nodes are back",
		file: "postgres/queries.go", from: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text)\n    THEN", to: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text) AND status <> 'dead' AND false\n    THEN",
		promise: "1 One leader: after a restart a node that is not back may still trust its term",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")}, says: "want outcome",
	},
	{
		name: "postgres: nodes that were found dead are not waited for",
		file: "postgres/queries.go", from: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text)\n    THEN", to: "    WHEN (server_lineage, server_epoch) IS DISTINCT FROM ($1::text, $2::text) AND status <> 'dead'\n    THEN",
		promise: "1 One leader: after a restart dead and living nodes look the same",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")}, says: "want outcome",
	},
	{
		name: "postgres: another process with the same id is back",
		file: "postgres/join.go", from: "        WHEN n.incarnation = ANY ($8) THEN n.trust_until\n", to: "        WHEN n.incarnation = ANY ($8) OR true THEN n.trust_until\n",
		promise: "1 One leader: a node's id does not prove which process it is",
		tests:   []tests{in("postgres", "^TestReunionAwaitsNodesThatMayTrust$")}, says: "want outcome",
	},
	{
		name: "postgres: every promoted replica is complete",
		file: "postgres/reunion.go", from: "return s.opening.Timing.SynchronousFailover && ", to: "return ",
		promise: "1 One leader: an asynchronous replica may lack nodes",
		tests:   []tests{in("postgres", "^TestReunionAfterPromotionNeedsSynchronousFailover$")}, says: "want the wait to end after the margin",
	},
	{
		name: "postgres: the clock of a promoted standby is trusted",
		file: "postgres/reunion.go", from: "max(settle, s.clockDifference(row))", to: "settle",
		promise: "2 Terms grow: a promoted standby lacks numbers that were used, and its clock may be behind",
		tests:   []tests{in("postgres", "^TestReunionAfterPromotionNeedsSynchronousFailover$")}, says: "want it to wait",
	},
	{
		name: "doctor: some of the standbys suffice for a synchronous failover",
		file: "postgres/internal/diagnosis/standbys.go", from: "case s.needed < len(s.names):", to: "case s.needed < 0:",
		promise: "1 One leader: nothing acknowledges on the old primary after a promotion",
		tests:   []tests{in("postgres", "^TestDoctorWarnsOfStandbysThatAcknowledgeAfterPromotion$")}, says: "so the others acknowledge",
	},
	{
		name: "postgres: a dead node is forgotten while it may trust its session",
		file: "postgres/members.go", from: "status = 'dead' AND ` + trustOver + ` RETURNING *", to: "status = 'dead' RETURNING *",
		promise: "1 One leader: after a restart the registry shows whom to wait for",
		tests:   []tests{in("postgres", "^TestForgetWaitsForTheLease$")}, says: "after its last heartbeat; want its lease",
	},
	{
		name: "postgres: a lost term is waited for as long as the last recorded one",
		file: "postgres/reunion.go", from: "timing.Lease, row.lease, s.server.Longest, timing.FailoverWait)", to: "timing.Lease, row.lease, timing.FailoverWait)",
		promise: "1 One leader: a crash may forget who led",
		tests:   []tests{in("postgres", "^TestNextTermWaitsForLeaderOfLostBegin$")}, says: "the forgotten leader's lease",
	},
	{
		name: "postgres: a lost term does not settle",
		file: "postgres/reunion.go", from: " || s.crashedSince(row) {\n", to: " || s.crashedSince(row) && false {\n",
		promise: "a term whose predecessor ended uncleanly waits for Settle",
		tests:   []tests{in("postgres", "^TestTermSettlesAfterLostBegin$")}, says: "want it to settle for",
	},
	{
		name: "postgres: the nodes of a newer primary are not waited for",
		file: "postgres/internal/server/server.go", from: "	if a.returned && a.at > s.UpAt {\n", to: "	if a.returned && a.at < s.UpAt {\n",
		promise: "1 One leader: an old primary does not know who led on a newer one",
		tests:   []tests{in("postgres", "^TestTermWaitsOnReturnedPrimary$")}, says: "want it to wait for",
	},
	{
		name: "postgres: a lost term is not recorded",
		file: "postgres/terms.go", from: "s.backend.recent.Add(s.opening.Node.ID, begun)", to: "_ = begun",
		promise: "the history has every term that a node led",
		tests:   []tests{in("postgres", "^TestNextTermWaitsForLeaderOfLostBegin$")}, says: "the history has the lost term",
	},
	{
		name: "postgres: the begin of a term waits for the replica",
		file: "postgres/migrations/0001_functions.up.sql", from: "    PERFORM set_config('synchronous_commit', 'off', true);\n", to: "    PERFORM set_config('synchronous_commit', 'on', true);\n",
		promise: "7 Someone leads: the begin of a term waits for no disk and no replica",
		tests:   []tests{in("postgres", "^TestTermBeginsWithoutReplica$")}, says: "the term waited for the replica",
	},
	{
		name: "postgres: a canceled wait for the replica is a success",
		file: "postgres/heartbeat.go", from: "	if err := s.warningAsError(stmtHeartbeat); err != nil {\n", to: "	if err := s.warningAsError(stmtHeartbeat); err != nil && false {\n",
		promise: "1 One leader: a heartbeat that did not reach the synchronous standby is a failure",
		tests:   []tests{in("postgres", "^TestCanceledWaitForReplicaIsNoSuccess$")}, says: "no heartbeat ever failed",
	},
	{
		name: "postgres: statements are sent without trust",
		file: "postgres/session.go", from: "	if !s.opening.MaySend() {\n		return fmt.Errorf(\"%w: %s was not sent", to: "	if false {\n		return fmt.Errorf(\"%w: %s was not sent",
		promise: "7 Someone leads: a session whose trust has ended sends nothing that would restart the server's timer",
		tests:   []tests{in("postgres", "^TestNothingIsSentWithoutTrust$")}, says: "want the session lost, and not its connection",
	},
	{
		name: "postgres: a request for an earlier term is obeyed",
		file: "postgres/requests.go", from: "held != nil && held.term == r.term {", to: "held != nil && held.term != 0 {",
		promise: "a request is for the leader that it was made for",
		tests:   []tests{in("postgres", "^TestRequestsReachLeaderAndNode$|^TestSessionConformsToContract/a_request")}, says: "in the next term",
	},

	// The lease and the reaper.
	{
		name: "postgres: the server does not end silent sessions",
		file: "internal/pgdial/settings.go", from: "of(func(l Limits) time.Duration { return l.Idle })", to: "of(func(l Limits) time.Duration { return 100 * l.Idle })",
		promise: "7 Someone leads: the server ends a session that was silent for one lease",
		tests:   []tests{in("postgres", "^TestServerEndsSilentSession$")}, says: "want it lost by the server's timeout",
	},
	{
		name: "postgres: TCP frees the locks before the lease has passed",
		file: "internal/pgdial/settings.go", from: "of(func(l Limits) time.Duration { return 2 * l.Lease })", to: "of(func(l Limits) time.Duration { return l.Lease / 2 })",
		promise: "1 One leader: TCP does not free a lock while trust runs",
		tests:   []tests{in("postgres", "^TestSettingsAreNotInherited$")}, says: "tcp_user_timeout",
	},
	{
		name: "postgres: a node stays with a host on which it cannot open a session",
		file: "internal/pgdial/dialer.go", from: "	hosts = last(hosts, func(t target) bool { return t.name() == avoided })\n", to: "	_ = avoided\n",
		promise: "7 Someone leads: an old primary that never commits is left",
		tests:   []tests{in("internal/pgdial", "^TestAvoidedHostIsTriedLast$")}, says: "connected to",
	},
	{
		name: "postgres: an acknowledged term can be lost in a crash",
		file: "internal/pgdial/settings.go", from: "\"synchronous_commit\", fixed(\"on\")", to: "\"synchronous_commit\", fixed(\"off\")",
		promise: "2 Terms grow: heartbeats and terms are durable whatever a role's setting says",
		tests:   []tests{in("postgres", "^TestSettingsAreNotInherited$")}, says: "synchronous_commit",
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
		tests:   []tests{in("postgres", "^TestReaperEndsStuckSession$")}, says: "was not won in",
	},
	{
		name: "postgres: no session reaps while the watch is down",
		file: "postgres/reaper.go", from: "	if !s.watch.down.Load() {\n", to: "	if true || !s.watch.down.Load() {\n",
		promise: "7 Someone leads: a stuck session is ended also while the successor's watch is down",
		tests:   []tests{in("postgres", "^TestSessionReapsWhileWatchIsDown$")}, says: "after the last heartbeat; the bound is",
	},
	{
		name: "postgres: heartbeats do not look for silent nodes",
		file: "postgres/heartbeat.go", from: "	s.silenceSeen = a.silence\n", to: "	s.silenceSeen = false\n",
		promise: "7 Someone leads: a stuck session is ended also while the successor's watch is silent",
		tests:   []tests{in("postgres", "^TestStuckSessionIsTerminatedAlthoughWatchFallsSilent$")}, says: "after the last heartbeat; the bound is",
	},
	{
		name: "postgres: heartbeats look at one node only",
		file: "postgres/queries.go", from: "            LIMIT 3\n        ) p\n", to: "            LIMIT 1\n        ) p\n",
		promise: "7 Someone leads: a stuck session is ended also while the successor's node is stopped",
		tests:   []tests{in("postgres", "^TestStuckSessionIsTerminatedAlthoughWatchFallsSilent$")}, says: "after the last heartbeat; the bound is",
	},
	{
		name: "postgres: an earlier session is left to the watch",
		file: "postgres/reaper.go", from: "	due := len(s.staleSession.dueNow()) > 0\n", to: "	due := false\n",
		promise: "7 Someone leads: a stuck earlier session is ended also while the watch is silent",
		tests:   []tests{in("postgres", "^TestStuckSessionIsTerminatedAlthoughWatchFallsSilent$")}, says: "after the last heartbeat; the bound is",
	},
	{
		name: "postgres: a death is seen only by its notification",
		file: "postgres/queries_watch.go", from: "SELECT nextval({membership:regclass}), nextval({releases:regclass})`,", to: "SELECT nextval({membership:regclass})`,",
		promise: "a lost notification costs at most a check interval",
		tests:   []tests{in("postgres", "^TestHeartbeatNoticesDeathBeforeTheTerm$")}, says: "no heartbeat reported a change after the death",
	},
	{
		name: "postgres: every node looks for sessions without a row",
		file: "postgres/queries_watch.go", from: "LIMIT 3) older\n    ) < 3\n", to: "LIMIT 3) older\n    ) <= 3\n",
		promise: "8 Idle is cheap: the locks read do not grow with the square of the nodes",
		tests:   []tests{in("postgres", "^TestThreeOldestNodesLookForSessionsWithoutRow$")}, says: "look; want",
	},
	{
		name: "postgres: sessions without roles count locks",
		file: "postgres/heartbeat.go", from: "%auditBeats == 0 && len(s.heldRoles) > 0\n", to: "%auditBeats == 0\n",
		promise: "8 Idle is cheap: the locks read do not grow with the square of the nodes",
		tests:   []tests{in("postgres", "^TestOnlySessionsWithRolesCountLocks$")}, says: "a session without roles has counted the locks",
	},

	// The ring.
	{
		name: "postgres: the watch connection is not opened again",
		file: "postgres/ring.go", from: "	const first, longest = 10 * time.Millisecond, 2 * time.Second\n", to: "	const first, longest = 10 * time.Minute, 20 * time.Minute\n",
		promise: "7 Someone leads: a lost watch connection is opened again",
		tests:   []tests{in("postgres", "^TestWatchConnectionIsOpenedAgain$")}, says: "SELECT pid <> $2 FROM pg_stat_activity",
	},

	// Opening.
	{
		name: "postgres: two servers behind one address are accepted",
		file: "postgres/server.go", from: "	case !session.Start.Equal(watch.Start):\n", to: "	case false:\n",
		promise: "1 One leader: both connections reach the same server",
		tests:   []tests{in("postgres", "^TestRefuse")}, says: "two servers",
	},
	{
		name: "postgres: a pooler is accepted",
		file: "postgres/server.go", from: "	case session.Pooled || watch.Pooled:\n", to: "	case session.Pooled && !session.Pooled:\n",
		promise: "1 One leader: poolers are refused",
		tests:   []tests{in("postgres", "^TestRefuse")}, says: "a pooler on the",
	},
	{
		name: "postgres: a server without locks is accepted",
		file: "postgres/server.go", from: "	case session.Locked && watch.Locked:\n", to: "	case session.Locked && !session.Locked:\n",
		promise: "1 One leader: a server whose locks do nothing is refused",
		tests:   []tests{in("postgres", "^TestRefuse")}, says: "locks that exclude no session",
	},
	{
		name: "postgres: an incarnation is used twice",
		file: "postgres/open.go", from: "		if s.incarnation > present {\n", to: "		if s.incarnation > 0 {\n",
		promise: "incarnations grow, also on a replica that lost the last values of the sequence",
		tests:   []tests{in("postgres", "^TestIncarnationsSkipRowsOfRestoredServer$")}, says: "the incarnation is",
	},
}
