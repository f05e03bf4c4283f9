package main

// agentMutants break the agent of a host and its nodes.
var agentMutants = []mutant{
	{
		name: "agent: nodes get no duplicate of the connection with the locks",
		file: "agent/server/client.go", from: "	if lock == nil {\n", to: "	if lock != nil {\n",
		promise: "1 One leader: the locks are freed when the work of all nodes has returned",
		tests:   []tests{in("agent", "^TestKilledAgentOfStoppedNodeKeepsTheRole$")}, says: "nvariant 1",
	},
	{
		name: "agent: a node trusts longer than its agent",
		file: "agent/session.go", from: "	s.limit = now.Add(answer.Until.Sub(wire.Now()))\n", to: "	s.limit = now.Add(s.options.Timing.Lease)\n",
		promise: "1 One leader: no node trusts a term longer than its agent",
		tests:   []tests{in("agent", "^TestTrustEndsWithThatOfTheAgent$")}, says: "nvariant 1",
	},
	{
		name: "agent: a node that breaks the protocol loses its roles",
		file: "agent/server/client.go", from: "	_, _ = io.Copy(io.Discard, c.conn)\n", to: "	_ = io.Discard\n",
		promise: "1 One leader: a role is released when its node has closed its connection",
		tests:   []tests{in("agent", "^TestNodeThatBreaksTheProtocolKeepsItsRole$")}, says: "nvariant 1",
	},
	{
		name: "agent: the session's limit of trust is ignored",
		file: "trust.go", from: "	limit := limited.TrustLimit()\n", to: "	_, limit := limited, until\n",
		promise: "1 One leader: trust ends at the limit of the session",
		tests:   []tests{in(".", "^TestSessionLimitsTrust$")}, says: "nvariant 1",
	},
}
