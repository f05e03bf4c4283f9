package main

// apiMutants break what several callers of one node, and programs beside it, may do.
var apiMutants = []mutant{
	{
		name: "engine: TryAcquire gives the term of this node to every caller",
		file: "try.go", from: "case term != nil && (term.acquired || e.terms != nil):", to: "case term != nil && e.terms != nil:",
		promise: "of several callers of TryAcquire at most one gets a term",
		tests:   []tests{in(".", "^TestTryAcquireIsGrantedOnce$")}, says: "a second caller has got a term",
	},
	{
		name: "engine: Campaign waits for ever for a term that was not resigned",
		file: "start.go", from: "e.node.cfg.StopTimeout)", to: "10*e.node.cfg.StopTimeout)",
		promise: "Campaign after a lost term that was not resigned is an error",
		tests:   []tests{in(".", "^TestTermThatIsNotResignedIsNamed$")}, says: "Campaign waited",
	},
	{
		name: "engine: callers of Campaign do not keep their order",
		file: "start.go", from: "return e.campaigns[0] != run ||", to: "return",
		promise: "callers of Campaign on one node get terms in the order of their calls",
		tests:   []tests{in(".", "^TestCampaignsOfOneNodeQueue$")}, says: "the next caller",
	},
	{
		name: "engine: a node keeps an election that it forgets",
		file: "elections.go", from: "delete(n.elections, e.role.Name())\n", to: "_ = n.elections\n",
		promise: "a node keeps nothing of a forgotten election",
		tests:   []tests{in(".", "^TestForgottenElectionMakesRoom$")}, says: "elections of the node are left",
	},
	{
		name: "engine: a forgotten election keeps its place in its group",
		file: "elections.go", from: "n.leaveGroupLocked(e)\n", to: "_ = e.group\n",
		promise: "a node keeps nothing of a forgotten election",
		tests:   []tests{in(".", "^TestForgottenElectionMakesRoom$")}, says: "the empty group keeps its limit",
	},
	{
		name: "engine: an election is forgotten while its work runs",
		file: "elections.go", from: "e.State() != Stopped || e.term != nil || e.attempt.mayHoldLock():", to: "e.State() != Stopped || e.attempt.mayHoldLock():",
		promise: "an election is forgotten only after its work has returned",
		tests:   []tests{in(".", "^TestElectionWithWorkIsNotForgotten$")}, says: "Forget before Resign",
	},
	{
		name: "engine: an observer ignores what the leader publishes",
		file: "leader.go", from: "l.GRPCPort == other.GRPCPort && maps.Equal(l.Labels, other.Labels)", to: "l.GRPCPort == other.GRPCPort || maps.Equal(l.Labels, other.Labels)",
		promise: "Observe reports changed labels of a leader",
		tests:   []tests{in("postgres", "^TestObserveReportsWhatLeaderPublishes$")}, says: "want a change of the same leader",
	},
	{
		name: "postgres: another program ends the term of a living leader",
		file: "postgres/migrations/0001.up.sql", from: "    old.term > 0 AND old.ended_at IS NULL\n", to: "    old.term < 0 AND old.ended_at IS NULL\n",
		promise: "only its own session ends the term of a living leader",
		tests:   []tests{in("postgres", "^TestRoleRowCannotBeChangedDuringSessions$")}, says: "want it refused",
	},
	{
		name: "postgres: a heartbeat overlooks that its term was ended",
		file: "postgres/heartbeat.go", from: "	case a.ended != nil:", to: "	case false:",
		promise: "a term that another program has ended is noticed at the next heartbeat",
		tests:   []tests{in("postgres", "^TestHeartbeatDetectsInterference$")}, says: "want the session lost",
	},
}
