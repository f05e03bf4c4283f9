package main

// leaseMutants break the SQL leases. Most are tried on SQLite, where a server
// need not be started.
var leaseMutants = []mutant{
	{
		name: "lease: a held role counts as free",
		file: "lease/roles.go", from: "	return r.holder.Valid && r.node.Valid && !r.sessionEndedAt.Valid\n", to: "	return r.holder.Valid && r.node.Valid && !r.sessionEndedAt.Valid && r.expiresAt.Int64 == 0\n",
		promise: "1 One leader",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance/SQLite/one_session_at_a_time_holds_a_role$")},
	},
	{
		name: "lease: a heartbeat does not renew",
		file: "lease/queries.go", from: "        ELSE {now} + lease_us\n    END,\n    current_connections", to: "        ELSE expires_at\n    END,\n    current_connections",
		promise: "heartbeats keep the lease",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance/SQLite/heartbeats_renew_the_lease$")},
	},
	{
		name: "lease: a superseded session renews its lease",
		file: "lease/queries.go", from: "WHERE incarnation = ? AND node_id = ? AND superseded_at IS NULL AND ended_at IS NULL\n    AND {server} = ?{durably}`", to: "WHERE incarnation = ? AND node_id = ? AND ended_at IS NULL\n    AND {server} = ?{durably}`",
		promise: "1 One leader: a heartbeat proves that the session still owns the node",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance/SQLite/a_new_session_supersedes_the_old_one$")},
	},
	{
		name: "lease: an ended session renews its lease",
		file: "lease/queries.go", from: "WHERE incarnation = ? AND node_id = ? AND superseded_at IS NULL AND ended_at IS NULL\n    AND {server} = ?{durably}`", to: "WHERE incarnation = ? AND node_id = ? AND superseded_at IS NULL\n    AND {server} = ?{durably}`",
		promise: "1 One leader: the end of a session is recorded before its roles are acquired",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance/SQLite/(the_lease_of_a_silent|no_statement)")},
	},
	{
		name: "lease: nothing settles",
		file: "lease/acquire.go", from: "	if t.leftOpen() && timing.Settle > 0 {\n", to: "	if t.leftOpen() && timing.Settle < 0 {\n",
		promise: "a term whose predecessor ended uncleanly waits for Settle",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance/SQLite/a_pending_role")},
	},
	{
		name: "lease: no wait after a server change",
		file: "lease/acquire.go", from: "	if at.since > 0 {\n", to: "	if at.since < 0 {\n",
		promise: "1 One leader: after a server change a term waits for a lease",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendServerChangeAwaitsOneLease$")},
	},
	{
		name: "lease: a server change is not detected",
		file: "lease/acquire.go", from: "	if err != nil || at.name == present {\n", to: "	if err != nil || at.name != \"\" {\n",
		promise: "1 One leader: a server change is detected",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendServerChangeAwaitsOneLease$")},
	},
	{
		name: "lease: a session continues after a server change",
		file: "lease/queries.go", from: "    AND {server} = ?{durably}`", to: "    AND ? IS NOT NULL{durably}`",
		promise: "1 One leader: a session belongs to the server on which it was opened",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendSessionEndsOnAnotherServer$")},
	},
	{
		name: "lease: the fence passes a stale term",
		file: "lease/fence.go", from: "		return changed > 0, err\n", to: "		return changed >= 0, err\n",
		promise: "3 Fenced writes are ordered",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendFenceRejectsOldTermInOldSnapshot$|^TestBackendFenceDelaysTheNextTerm$")},
	},
	{
		name: "lease: the fence does not check the end of the term",
		file: "lease/queries.go", from: "SET term = term\nWHERE role = ? AND term = ? AND node_id = ? AND ended_at IS NULL`,", to: "SET term = term\nWHERE role = ? AND term = ? AND node_id = ?`,",
		promise: "3 Fenced writes are ordered: an ended term passes no fence",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendFence")},
	},
	{
		name: "lease: statements are sent without trust",
		file: "lease/session.go", from: "	case !s.options.MaySend():\n", to: "	case s.options.MaySend == nil:\n",
		promise: "a session whose trust has ended does not renew its lease",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance/SQLite/no_statement_is_sent_after_trust_has_ended$")},
	},
	{
		name: "lease: an unconfirmed acquisition is not recorded",
		file: "lease/acquire.go", from: "			s.unconfirmed[t.role] = struct{}{}\n", to: "			delete(s.unconfirmed, t.role)\n",
		promise: "7 Someone leads: a role whose acquisition is unconfirmed is released",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendUnacknowledgedCommitsKeepInvariants$|^TestBackendLostAnswersLeaveCleanConnections$|^TestBackendUnacknowledgedCommitIsResolved$")},
	},
	{
		name: "lease: leaving is not announced",
		file: "lease/session.go", from: "		return sqldb.Exec(ctx, on, s.backend.queries.announceVacancy)\n	})\n}\n\n// Abort", to: "		return nil\n	})\n}\n\n// Abort",
		promise: "7 Someone leads: a vacant role is filled within a poll interval",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendLeavingIsAnnounced$/^SQLite$")},
	},
	{
		name: "lease: the store acquires a valid lease",
		file: "lease/store/queries.go", from: "lease_expires_at IS NULL OR lease_expires_at <= {clock})\n", to: "lease_expires_at IS NULL OR lease_expires_at > {clock})\n",
		promise: "1 One leader: a valid lease is not acquired",
		tests:   []tests{inCommand("internal/dialects", "^TestStoreConformance$/^SQLite")},
	},
	{
		name: "lease: the store renews an expired lease",
		file: "lease/store/queries.go", from: "    AND term_leader_id = ?\n    AND lease_expires_at > {clock}\n", to: "    AND term_leader_id = ?\n    AND lease_expires_at IS NOT NULL\n",
		promise: "2 Terms grow: an expired lease is acquired again with a new term",
		tests:   []tests{inCommand("internal/dialects", "^TestStoreConformance$/^SQLite")},
	},
	{
		name: "lease: the nil id holds a vacant lease",
		file: "lease/store/lease.go", from: "	if l.Holder != candidate || candidate == uuid.Nil {\n", to: "	if l.Holder != candidate {\n",
		promise: "1 One leader: no candidate holds a vacant lease",
		tests:   []tests{in("lease/store", "^TestHeldByExpiresWithTheLease$")},
	},
	{
		name: "lease: a session begins with half a lease",
		file: "lease/queries.go", from: "CAST(? AS {integer}), {now} + ?\n", to: "CAST(? AS {integer}), {now} + ? / 2\n",
		promise: "1 One leader: no role is acquired before its holder's lease has expired",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendKeepsTheWholeLease$/^an_opening$/^SQLite$")},
	},
	{
		name: "lease: a heartbeat renews half a lease",
		file: "lease/queries.go", from: "        ELSE {now} + lease_us\n", to: "        ELSE {now} + lease_us / 2\n",
		promise: "1 One leader: no role is acquired before its holder's lease has expired",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendKeepsTheWholeLease$/^a_heartbeat$/^SQLite$")},
	},
	{
		name: "lease: a lease expires although it was renewed",
		file: "lease/queries.go", from: "WHERE ended_at IS NULL AND expires_at <= {now} AND incarnation IN %s`),", to: "WHERE ended_at IS NULL AND incarnation IN %s`),",
		promise: "1 One leader: a heartbeat and the end of a lease exclude each other",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendRenewedLeaseDoesNotExpire$/^SQLite$")},
	},
	{
		name: "lease: all leases expire with the first",
		file: "lease/queries.go", from: "WHERE ended_at IS NULL AND expires_at <= {now}`),", to: "WHERE ended_at IS NULL`),",
		promise: "1 One leader: the role of a live session is not acquired",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendConformance$/^SQLite$/^the_loss_of_a_session_wakes_candidates$")},
	},
	{
		name: "lease: an expired session acquires a role",
		file: "lease/queries.go", from: "AND superseded_at IS NULL AND ended_at IS NULL\n    {for update}", to: "AND superseded_at IS NULL\n    {for update}",
		promise: "1 One leader: a session that has ended acquires no role",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendEndedSessionAcquiresNoRole$/^its_lease_has_expired$/^SQLite$")},
	},
	{
		name: "lease: a superseded session acquires a role",
		file: "lease/queries.go", from: "AND superseded_at IS NULL AND ended_at IS NULL\n    {for update}", to: "AND ended_at IS NULL\n    {for update}",
		promise: "1 One leader: a superseded session acquires no role",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendEndedSessionAcquiresNoRole$/^its_node_has_a_newer_session$/^SQLite$")},
	},
	{
		name: "lease: two sessions acquire a role at the same time",
		file: "lease/acquire.go", from: "case now.term != t.term || now.holder != t.holder || now.key != t.key:", to: "case now.key != t.key:",
		promise: "1 One leader: of two sessions that find a role free, one acquires it",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendOneOfTwoSessionsAcquiresARole$/^SQLite$")},
	},
	{
		name: "lease: a session acquires a role under a key that has changed",
		file: "lease/acquire.go", from: " || now.key != t.key:", to: ":",
		promise: "one name has one key, also while it changes",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendKeyThatChangesIsCompared$/^SQLite$")},
	},
	{
		name: "lease: a lease is trusted from the arrival of the answer",
		file: "lease/store/lease.go", from: "		r := leaderRow{readAt: readAt}\n", to: "		r := leaderRow{readAt: readAt.Add(time.Since(readAt))}\n",
		promise: "1 One leader: a lease that was read is not trusted beyond its end",
		tests:   []tests{inCommand("internal/dialects", "^TestLeasesAgeFromTheQuery$/^SQLite$")},
	},
	{
		name: "lease: the search path chooses the installation",
		file: "lease/backend.go", from: "		c.Schema = dialect.DefaultSchema()\n", to: "		c.Schema = \"\"\n",
		promise: "1 One leader: programs on one database belong to one installation, whatever their search paths",
		tests:   []tests{inCommand("internal/dialects", "^TestBackendIgnoresSearchPath$")},
	},
	{
		name: "lease: the search path chooses the tables of a store",
		file: "lease/store/config.go", from: "		c.Schema = dialect.DefaultSchema()\n", to: "		c.Schema = \"\"\n",
		promise: "1 One leader: stores on one database elect one leader, whatever their search paths",
		tests:   []tests{inCommand("internal/dialects", "^TestStoreIgnoresSearchPath$")},
	},
	{
		name: "lease: a leader is listed from the arrival of the answer",
		file: "lease/nodes.go", from: "tenure.Leader{ReadAt: readAt}\n", to: "tenure.Leader{ReadAt: readAt.Add(time.Since(readAt))}\n",
		promise: "1 One leader: a lease that was read is not trusted beyond its end",
		tests:   []tests{inCommand("internal/dialects", "^TestLeasesAgeFromTheQuery$/^SQLite$")},
	},
}
