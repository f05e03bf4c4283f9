package main

// recordMutants break the ends of terms and the registry on PostgreSQL.
var recordMutants = []mutant{
	// Fences, resignations and deaths.
	{
		name: "postgres: the fence takes any term of the node",
		file: "postgres/fence.go", from: "ON t.role = held.role AND t.term = held.term AND t.node_id", to: "ON t.role = held.role AND held.term > 0 AND t.node_id",
		promise: "3 Fenced writes are ordered: a term of the same node that has ended passes no fence",
		tests:   []tests{in("postgres", "^TestFenceRejectsEarlierTermOfSameNode$")}, says: "with an earlier term of the node",
	},
	{
		name: "postgres: a function commits its own transaction",
		file: "postgres/intx.go", from: "func (fencedTx) Commit(context.Context) error { return errOwnCommit }", to: "func (t fencedTx) Commit(ctx context.Context) error { return t.Tx.Commit(ctx) }",
		promise: "3 Fenced writes are ordered: nothing is committed before the fence",
		tests:   []tests{in("postgres", "^TestInTxCommitsOnlyItself$")}, says: "rows were committed without the fence",
	},
	{
		name: "postgres: a transaction that was ended is fenced",
		file: "postgres/fence.go", from: "status != 'T' {", to: "status == 0 {",
		promise: "3 Fenced writes are ordered: a function that ends its transaction gets an error",
		tests:   []tests{in("postgres", "^TestInTxCommitsOnlyItself$")}, says: ": no error",
	},
	{
		name: "postgres: the fence names no schema",
		file: "postgres/fence.go", from: "FROM {terms} t\n", to: "FROM tenure_terms t\n",
		promise: "3 Fenced writes are ordered: the fence reads the table of its installation",
		tests:   []tests{in("postgres", "^TestFenceReadsItsOwnSchema$")}, says: "a term that is open in another schema alone",
	},
	{
		name: "postgres: the session searches in other schemas",
		file: "internal/pgdial/settings.go", from: "\"search_path\", fixed(\"pg_catalog\")", to: "\"search_path\", fixed(\"public\")",
		promise: "functions and operators are those of PostgreSQL",
		tests:   []tests{in("postgres", "^TestOperatorsOfOtherSchemasAreNotUsed$")}, says: "an operator of another schema was used",
	},
	{
		name: "postgres: a resignation is not announced",
		file: "postgres/queries.go", from: "IS NOT NULL WHERE $10::text <> ''`", to: "IS NOT NULL WHERE $10::text <> '' AND false`",
		promise: "7 Someone leads: a vacant role is filled in milliseconds after a resignation",
		tests:   []tests{in("postgres", "^TestResignationFreesTheRole$")}, says: "the resignation was not announced",
	},
	{
		name: "postgres: a resignation keeps the lock",
		file: "postgres/queries.go", from: "SELECT pg_advisory_unlock(k) FROM written, unnest($7::bigint[]) k\n", to: "SELECT k IS NOT NULL FROM written, unnest($7::bigint[]) k\n",
		promise: "7 Someone leads: a resignation frees the lock",
		tests:   []tests{in("postgres", "^TestResignationFreesTheRole$")}, says: "want it granted",
	},
	{
		name: "postgres: a resignation in steps is not announced",
		file: "postgres/release.go", from: "	err = s.query(stmtReleased, nil, s.backend.names.ElectionsChannel())\n", to: "	err = nil\n",
		promise: "7 Someone leads: a vacant role is filled in milliseconds after a resignation, also if its record cannot be written",
		tests:   []tests{in("postgres", "^TestRoleIsReleasedWhenRecordFails$")}, says: "the release was not announced",
	},
	{
		name: "postgres: a death is not announced",
		file: "postgres/queries_watch.go", from: "SELECT name, silent, pg_notify($2, id::text) FROM dead`", to: "SELECT name, silent, $2::text FROM dead`",
		promise: "7 Someone leads: the node that sees a death notifies all candidates",
		tests:   []tests{in("postgres", "^TestCrashIsNoticedInMilliseconds$")}, says: "a node that does not try was not notified of the crash",
	},
	{
		name: "postgres: the roles of a forgotten node are announced before its session has ended",
		file: "postgres/members.go", from: "if err := notify(); err != nil || !ended {\n", to: "if err := notify(); err != nil || ended {\n",
		promise: "7 Someone leads: a node that is forgotten frees its roles",
		tests:   []tests{in("postgres", "^TestForgettingNotifiesAfterEndOfSession$")}, says: "Forget waits for the end of the session",
	},
	{
		name: "postgres: a node that left its session behind cannot be forgotten",
		file: "postgres/members.go", from: "RETURNING *, set_config('tenure.incarnation', incarnation::text, true)", to: "RETURNING *",
		promise: "7 Someone leads: a node that is forgotten frees its roles",
		tests:   []tests{in("postgres", "^TestForgettingNotifiesAfterEndOfSession$")}, says: "Forget waits for the end of the session",
	},
	{
		name: "postgres: the wait that finds a holder of a row lasts its whole limit",
		file: "postgres/fencing.go", from: "SELECT pg_cancel_backend($1)", to: "SELECT $1::int",
		promise: "7 Someone leads: a transaction that holds the row of a role is ended after the fence timeout",
		tests:   []tests{in("postgres", "^TestTransactionsThatHoldTheRowAreTerminated$/released")}, says: "Invariant 7: the term began",
	},
	{
		name: "postgres: after a promotion each candidate waits anew",
		file: "postgres/reunion.go", from: "	if s.isCopy(row) {\n\t\treturn lockedAt", to: "	if s.isCopy(row) || row.lineage != s.server.Lineage() {\n\t\treturn lockedAt",
		promise: "7 Someone leads: one lease after the first node opened a session on a promoted replica",
		tests:   []tests{in("postgres", "^TestWaitAfterRestartCountsOnce$/promotion")}, says: "want it after the lease of",
	},
	{
		name: "pgdial: an address stays a server for ever",
		file: "internal/pgdial/dialer.go", from: "			delete(d.servers, address)\n", to: "			delete(d.servers, network)\n",
		promise: "a pooler is refused, also if it takes the place of a server",
		tests:   []tests{in("internal/pgdial", "^TestPgpoolIsAskedForAgain$")}, says: "questions; want",
	},
	{
		name: "pgdial: a session does not look for Pgpool-II",
		file: "internal/pgdial/check.go", from: "	if !always && d.isServer(remote) {\n", to: "	if d.isServer(remote) {\n",
		promise: "a pooler is refused, also if it takes the place of a server",
		tests:   []tests{in("internal/pgdial", "^TestPgpoolIsAskedForAgain$")}, says: "questions; want",
	},

	// Reading the registry.
	{
		name: "postgres: a notification without a payload changes no node",
		file: "postgres/internal/signal/changed_nodes.go", from: "		c.any, c.ids = true, nil\n", to: "		c.any, c.ids = false, nil\n",
		promise: "a change that a node of another version reports is seen",
		tests:   []tests{in("postgres", "^TestRefreshHonorsPayload$")}, says: "a change of any node is read",
	},
	{
		name: "postgres: a notification about roles changes every node",
		file: "postgres/internal/signal/changed_nodes.go", from: "	if payload == link.RolesOnly {\n", to: "	if payload == link.RolesOnly && false {\n",
		promise: "the registry is read only after changes of nodes",
		tests:   []tests{in("postgres", "^TestRefreshHonorsPayload$")}, says: "a notification about roles caused a read of nodes",
	},
	{
		name: "postgres: a death names no node",
		file: "postgres/queries_watch.go", from: "SELECT name, silent, pg_notify($2, id::text) FROM dead`", to: "SELECT name, silent, pg_notify($2, '` + link.RolesOnly + `') FROM dead`",
		promise: "every member learns of a death in milliseconds",
		tests:   []tests{in("postgres", "^TestRefreshReadsReportedNodes$")}, says: "a node died",
	},
	{
		name: "postgres: a refresh keeps the nodes that left",
		file: "postgres/members.go", from: "return slices.Contains(ids, m.ID) })", to: "return slices.Contains(ids, m.ID) && false })",
		promise: "every member sees that a node left",
		tests:   []tests{in("postgres", "^TestRefreshReadsReportedNodes$")}, says: "a node that left is gone",
	},
	{
		name: "postgres: a session takes a report of a request for one of a node",
		file: "postgres/session.go", from: "if !aboutNode {", to: "if !aboutNode && n.Payload == link.AnyNode {",
		promise: "a request reaches its node immediately",
		tests:   []tests{in("postgres", "^TestRequestsAreReadWhenReported$")}, says: "the requests after",
	},
	{
		name: "postgres: the watch tries the locks of all nodes",
		file: "postgres/queries_watch.go", from: "WHERE CASE WHEN n.status = 'dead' AND n.id <> $1 THEN NOT pg_try_advisory_xact_lock_shared($3::int, n.incarnation) END`", to: "WHERE n.status = 'dead' AND n.id <> $1 AND NOT pg_try_advisory_xact_lock_shared($3::int, n.incarnation)`",
		promise: "what a watch does grows with the dead nodes and not with all",
		tests:   []tests{in("postgres", "^TestWatchTriesOnlyLocksOfTheDead$")}, says: "were free and are held; want that of 1001 only",
	},
	{
		name: "cluster: reports keep the view from reading all nodes",
		file: "cluster/view.go", from: "v.clock.Now().Mono-v.readAt < v.reread\n", to: "v.clock.Now().Mono-v.latest < v.reread\n",
		promise: "a change whose report was lost is seen",
		tests:   []tests{in("cluster", "^TestViewRefreshesAfterReports$")}, says: "all rows were read",
	},
	{
		name: "cluster: a view keeps the labels that it read first",
		file: "cluster/node.go", from: "if before != nil && sameSets(m, before) {", to: "if before != nil {",
		promise: "every member sees a changed description",
		tests:   []tests{in("cluster", "^TestViewSharesOnlyWhatHasNotChanged$")}, says: "after a change of the",
	},
	{
		name: "cluster: a member reads all nodes again when it begins to follow",
		file: "cluster/view.go", from: "for reported := true;", to: "for reported := false;",
		promise: "a join reads the registry once",
		tests:   []tests{in("cluster", "^TestViewReadsNewRowsFirstAfterRead$")}, says: "reads of all rows and",
	},
	{
		name: "postgres: a call of the watch always counts as one that waited",
		file: "postgres/migrations/0001_functions.up.sql", from: "    waited := false;\n", to: "    waited := true;\n",
		promise: "a death that no node observed has no time",
		tests:   []tests{in("postgres", "^TestFarNodeHasNotSeenAnEarlierDeath$")}, says: "the death counts as seen",
	},
	{
		name: "postgres: a watch that lost its connection waited all the time",
		file: "postgres/ring.go", from: "w.waited = false // what", to: "_ = 0 // what",
		promise: "a death that no node observed has no time",
		tests:   []tests{in("postgres", "^TestWatchHasNotSeenADeathWhileItWasDown$")}, says: "the death counts as seen",
	},
	{
		name: "postgres: the tracer of a connection sees no statement of a session",
		file: "postgres/internal/link/statements.go", from: "if s.tracer != nil {", to: "if false {",
		promise: "the figures of nodes at rest count each statement",
		tests:   []tests{in("postgres", "^TestTracerSeesTheStatementsOfASession$")}, says: "want 3 heartbeats",
	},
	{
		name: "postgres: what a frozen node watched counts as watched",
		file: "postgres/ring.go", from: "if silent { //", to: "if false { //",
		promise: "a death that no node observed has no time",
		tests:   []tests{in("internal/acceptance", "^TestDeathBehindAFrozenWatcherIsNotSeen$")}, says: "the death counts as seen",
	},
	{
		name: "postgres: the end of a silent session was not seen by the watch that ended it",
		file: "postgres/ring.go", from: "w.waited || found.incarnation == w.silent", to: "w.waited",
		promise: "a death that a node observed has a time",
		tests:   []tests{in("postgres", "^TestWatchSeesTheEndOfASilentNode$")}, says: "the death does not count as seen",
	},
	{
		name: "cluster: a planned move that crosses another one stays as long as an operator's",
		file: "cluster/spread_offer.go", from: "now+shortAdoption*interval", to: "now+longAdoption*interval",
		promise: "the shares of a spread are equal again soon",
		tests:   []tests{in("cluster", "^TestMemberKeepsRolesOfOperatorsLonger$")}, says: "the member leads the role",
	},
}
