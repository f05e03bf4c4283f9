package main

// agentPromiseMutants break what an agent promises its nodes and other hosts. The
// tests of package agent catch each of them.
var agentPromiseMutants = []mutant{
	// Leases of nodes.
	{
		name: "agent: a late call revives the lease of its node",
		file: "agent/server/client.go", from: "	case c.gone || now >= c.leaseUntil:\n", to: "	case c.gone:\n",
		promise: "1 One leader: a lease that has expired is not revived",
		tests:   []tests{in("agent", "^TestLateCallDoesNotReviveLease$")}, says: "after the lease of the node",
	},
	{
		name: "agent: calls do not renew the lease of their node",
		file: "agent/server/client.go", from: "		c.leaseUntil = now.Add(c.lease)\n", to: "		_ = now.Add(c.lease)\n",
		promise: "7 Someone leads: a node that calls keeps its session",
		tests:   []tests{in("agent", "^TestNodeThatCallsKeepsItsSession$")}, says: "loses its session",
	},
	{
		name: "agent: the lease of a node expires early",
		file: "agent/server/client.go", from: "		case now >= c.leaseUntil:\n", to: "		case now >= c.leaseUntil.Add(-c.lease / 2):\n",
		promise: "1 One leader: a role is released when the lease of its node has expired",
		tests:   []tests{in("agent", "^TestSilentNodeLosesItsRoleAfterItsLease$")}, says: "nvariant 1",
	},
	{
		name: "agent: the roles of a silent node are never released",
		file: "agent/server/client.go", from: "			h.goneLocked(c, history.EndLeaseExpired)\n", to: "			_ = history.EndLeaseExpired\n",
		promise: "7 Someone leads: a silent node loses its roles after its lease",
		tests:   []tests{in("agent", "^TestRoleOfSilentNodeIsReleasedAfterItsLease$")}, says: "the role of a silent node is not released",
	},
	{
		name: "agent: the end of a node's lease does not wake the agent",
		file: "agent/server/client.go", from: "			next = min(next, c.leaseUntil)\n", to: "			_ = min(next, c.leaseUntil)\n",
		promise: "7 Someone leads: a silent node loses its roles after its lease",
		tests:   []tests{in("agent", "^TestRoleOfSilentNodeIsReleasedAfterItsLease$")}, says: "the role of a silent node is not released",
	},
	{
		name: "agent: a node whose lease has expired gets a role",
		file: "agent/server/arbiter.go", from: "		if j.client.gone {\n", to: "		if j.client.gone && false {\n",
		promise: "7 Someone leads: no role is held for a node that is gone",
		tests:   []tests{in("agent", "^TestNodeWhoseLeaseExpiresGetsNoRole$")}, says: "a node whose lease has expired",
	},
	{
		name: "agent: an older session of a node continues",
		file: "agent/server/client.go", from: "		last.superseded = true\n", to: "		last.superseded = false\n",
		promise: "1 One leader: the newest session of a node supersedes the earlier ones",
		tests:   []tests{in("agent", "^TestOlderSessionOfNodeIsSuperseded$")}, says: "want ErrSuperseded",
	},
	{
		name: "agent: the end of an older session forgets the newer one",
		file: "agent/server/arbiter.go", from: "	if h.clients[c.node.ID] == c {\n", to: "	if h.clients[c.node.ID] != nil {\n",
		promise: "7 Someone leads: a node is woken when a role is vacant",
		tests:   []tests{in("agent", "^TestNewerSessionOutlivesTheOlderOne$")}, says: "the newer session of a node is not woken",
	},
	{
		name: "agent: incarnations begin again with each session of the agent",
		file: "agent/server/client.go", from: "incarnation: h.inner.Incarnation()<<32 | h.incarnations,", to: "incarnation: h.incarnations,",
		promise: "the incarnation of a session is larger than those of all earlier ones",
		tests:   []tests{in("agent", "^TestIncarnationsIncreaseAcrossSessionsOfTheAgent$")}, says: "a later session has the incarnation",
	},

	// Who has a role.
	{
		name: "agent: all nodes that wait for a role get it",
		file: "agent/server/arbiter.go", from: "; place.Outcome != tenure.OutcomeFailed {\n", to: "; place.Outcome == tenure.OutcomePending {\n",
		promise: "1 One leader: one node of those that wait gets a role",
		tests:   []tests{in("agent", "^TestOneOfTheNodesThatWaitGetsTheRole$")}, says: "of two nodes have the role",
	},
	{
		name: "agent: a role that settles for a node is given to another one",
		file: "agent/server/arbiter.go", from: "		case held.client != c:\n", to: "		case held.client != c && held.term != 0:\n",
		promise: "1 One leader: a pending role belongs to one node",
		tests:   []tests{in("agent", "^TestRoleSettlesAfterNodeWasLost$")}, says: "a role that settles for another node",
	},
	{
		name: "agent: a role that a node holds is locked again",
		file: "agent/server/arbiter.go", from: "		case held.term != 0: // Invariant 5", to: "		case held.term < 0: // Invariant 5",
		promise: "5 Locked once: a role that is held is not locked again",
		tests:   []tests{in("agent", "^TestHeldRoleIsNotLockedAgain$")}, says: "nvariant 5",
	},
	{
		name: "agent: a node releases the role of another one",
		file: "agent/server/arbiter.go", from: "held == nil || held.client != j.client || held.term", to: "held == nil || held.term",
		promise: "1 One leader: no other node releases the role of a leader",
		tests:   []tests{in("agent", "^TestNodeReleasesOnlyItsPresentTerm$")}, says: "releasing the role of another node",
	},
	{
		name: "agent: a release of an earlier term ends the present one",
		file: "agent/server/arbiter.go", from: " || held.term != r.Term && r.Term != 0 {", to: " {",
		promise: "1 One leader: a release ends the term that it names",
		tests:   []tests{in("agent", "^TestNodeReleasesOnlyItsPresentTerm$")}, says: "a release of an earlier term ends",
	},
	{
		name: "agent: the role of a node that died does not settle",
		file: "agent/server/client.go", from: "	h.goneLocked(c, history.EndCrashed)\n", to: "	h.goneLocked(c, history.EndShutdown)\n",
		promise: "1 One leader: a role settles after its leader died",
		tests:   []tests{in("agent", "^TestRoleSettlesAfterNodeWasLost$")}, says: "while it settles",
	},
	{
		name: "agent: the role of a silent node does not settle",
		file: "agent/server/client.go", from: "			h.goneLocked(c, history.EndLeaseExpired)\n", to: "			h.goneLocked(c, history.EndShutdown)\n",
		promise: "1 One leader: a role settles after its leader fell silent",
		tests:   []tests{in("agent", "^TestRoleSettlesAfterNodeWasLost$")}, says: "while it settles",
	},

	// What is released.
	{
		name: "agent: the end of a node releases nothing",
		file: "agent/server/client.go", from: "	h.goneLocked(c, history.EndCrashed)\n", to: "	_ = history.EndCrashed\n",
		promise: "7 Someone leads: the roles of a node that died are released",
		tests:   []tests{in("agent", "^TestRoleOfDeadNodeIsReleased$")}, says: "the role of a node that died is not released",
	},
	{
		name: "agent: the last role of a node that died stays locked",
		file: "agent/server/arbiter.go", from: "	if len(releases) > 0 {\n		if err", to: "	if len(releases) > 1 {\n		if err",
		promise: "7 Someone leads: the roles of a node that died are released",
		tests:   []tests{in("agent", "^TestRoleOfDeadNodeIsReleased$")}, says: "the role of a node that died is not released",
	},
	{
		name: "agent: a release that failed counts as one",
		file: "agent/server/arbiter.go", from: "		return lostBy(\"release\", err)\n", to: "		h.cfg.Logger.Warn(\"release\", \"error\", err)\n",
		promise: "7 Someone leads: a session that may hold a lock that it should not is ended",
		tests:   []tests{in("agent", "^TestFailedReleaseEndsTheSessionOfTheAgent$")}, says: "a role whose release failed stays locked",
	},
	{
		name: "agent: a release that failed counts as one when a node ends",
		file: "agent/server/arbiter.go", from: "			return lostBy(\"release the roles of a node\", err)\n", to: "			h.cfg.Logger.Warn(\"release\", \"error\", err)\n",
		promise: "7 Someone leads: a session that may hold a lock that it should not is ended",
		tests:   []tests{in("agent", "^TestFailedReleaseEndsTheSessionOfTheAgent$")}, says: "a role whose release failed stays locked",
	},
	{
		name: "agent: a reservation within the host is for the agent of another one",
		file: "agent/server/arbiter.go", from: "			target = h.node\n", to: "			target = r.Target\n",
		promise: "a role is handed over to a node of the same host",
		tests:   []tests{in("agent", "^TestRoleIsHandedOverWithinTheHost$")}, says: "the target of a hand-over",
	},
	{
		name: "agent: another node of the host gets a reserved role",
		file: "agent/server/arbiter.go", from: "		case r.node != c.node.ID:\n", to: "		case r.node != c.node.ID && false:\n",
		promise: "a role is handed over to a node of the same host",
		tests:   []tests{in("agent", "^TestRoleIsHandedOverWithinTheHost$")}, says: "a node that is not the target of a hand-over",
	},
	{
		name: "agent: a reservation within the host never expires",
		file: "agent/server/arbiter.go", from: "		case now >= r.until:\n", to: "		case now >= r.until && false:\n",
		promise: "7 Someone leads: a reservation expires",
		tests:   []tests{in("agent", "^TestReservationEndsWithItsTimeOrItsNode$")}, says: "a reservation that has expired",
	},
	{
		name: "agent: a reservation within the host outlives its node",
		file: "agent/server/arbiter.go", from: "		maps.DeleteFunc(h.reservations, func(_ string, r reservation) bool { return r.node == c.node.ID })\n", to: "		maps.DeleteFunc(h.reservations, func(_ string, r reservation) bool { return false })\n",
		promise: "7 Someone leads: a reservation ends with its node",
		tests:   []tests{in("agent", "^TestReservationEndsWithItsTimeOrItsNode$")}, says: "the reservation for a node that died",
	},
	{
		name: "agent: a release wakes no other node",
		file: "agent/server/host.go", from: "		if c != but {\n", to: "		if c == but {\n",
		promise: "7 Someone leads: standbys are woken when a role is vacant",
		tests:   []tests{in("agent", "^TestReleaseWakesTheOtherNodes$")}, says: "a standby is not woken",
	},
	{
		name: "agent: a notification does not end what is known of other hosts",
		file: "agent/server/host.go", from: "	clear(h.misses)\n", to: "	_ = h.misses\n",
		promise: "7 Someone leads: a role is tried again after a notification",
		tests:   []tests{in("agent", "^TestRoleThatAnotherHostReleasedIsTriedAgain$")}, says: "long after that has released the role",
	},
	{
		name: "agent: what is known of other hosts ends only with a notification",
		file: "agent/server/arbiter.go", from: "m.role == role && now < m.until {", to: "m.role == role && m.until > 0 {",
		promise: "7 Someone leads: a role is tried again although a notification was lost",
		tests:   []tests{in("agent", "^TestRoleThatAnotherHostReleasedIsTriedAgain$")}, says: "long after that has released the role",
	},

	// Requests.
	{
		name: "agent: a request outlives the term that it is for",
		file: "agent/server/arbiter.go", from: "	c.requests = slices.DeleteFunc(c.requests, func(r tenure.Request) bool { return h.held[r.Role] == nil })\n", to: "	c.requests = slices.DeleteFunc(c.requests, func(r tenure.Request) bool { return false })\n",
		promise: "a request is for one term",
		tests:   []tests{in("agent", "^TestRequestEndsWithItsTerm$")}, says: "which were for term",
	},
	{
		name: "agent: a request for a term that has ended reaches the next one",
		file: "agent/server/query.go", from: "held != nil && r.Term != 0 && r.Term != held.term {", to: "held != nil && r.Term < 0 {",
		promise: "a request is for one term",
		tests:   []tests{in("agent", "^TestRequestEndsWithItsTerm$")}, says: "a request for a term that has ended",
	},
	{
		name: "agent: a request does not wake the leader",
		file: "agent/server/requests.go", from: "	c.wakeLocked()\n", to: "	_ = c.woken\n",
		promise: "a leader reads a request when it is made",
		tests:   []tests{in("agent", "^TestRequestEndsWithItsTerm$")}, says: "a leader is not woken by a request",
	},
	{
		name: "agent: heartbeats do not report that requests wait",
		file: "agent/server/client.go", from: "Pending: len(c.requests) > 0}", to: "Pending: false}",
		promise: "a leader learns of a request with its next heartbeat at the latest",
		tests:   []tests{in("agent", "^TestRequestEndsWithItsTerm$")}, says: "hides that a request waits",
	},
	{
		name: "agent: a hand-over to its node names the node to the database",
		file: "agent/server/query.go", from: "		r.Target = h.node\n", to: "		_ = h.node\n",
		promise: "a node of an agent is the target of a hand-over from another host",
		tests:   []tests{in("agent", "^TestRoleOfAnotherHostIsHandedOverToTheAgent$")}, says: "a hand-over from another host",
	},
	{
		name: "agent: the records have the agent in the place of its node",
		file: "agent/server/arbiter.go", from: "YieldTerm: a.YieldTerm, NodeName: j.client.node.Name}", to: "YieldTerm: a.YieldTerm}",
		promise: "a leader behind an agent is shown by its own name",
		tests:   []tests{in("agent", "^TestLeaderBehindAnAgentHasItsName$")}, says: "billing is led by",
	},
	{
		name: "take: all leaders have the name of the first one",
		file: "postgres/migrations/0001_functions.up.sql", from: "            coalesce(h.name, names[1]) AS name,\n", to: "            names[1] AS name,\n",
		promise: "a leader behind an agent is shown by its own name",
		tests:   []tests{in("postgres", "^TestTermHasTheNameOfTheNodeBehindAnAgent$")}, says: "is led by",
	},
}
