package main

// stepMutants are mutants of the engine that the replay of its steps alone must name: the
// simulator's other oracles are off.
var stepMutants = named([]stepMutant{
	{"engine: trust counts from the answer of a heartbeat", "trust = TRUST - waits"},
	{"engine: trust is longer than the lease", "trust = TRUST - waits"},
	{"engine: trust is revived by a late answer", "trust had ended before the answer came"},
	{"engine: a heartbeat that failed extends trust", "conn = 1 || trust > 0"},
	{"engine: a term begins after trust has ended", "trust > 0"},
	{"engine: a role is released under running work", "work = 0: work of term"},
	{"engine: the connection is closed under running work", "work_first: work on"},
	{"engine: the connection does not wait for the work", "work_first: work on"},
	{"engine: trust counts from the answer of the first heartbeat", "trust = TRUST - waits"},
})

// seenMutants break the rules for what is seen of a real server.
var seenMutants = []mutant{
	{
		name: "trace: a leader needs no lock",
		file: "lab/model/trace/observed.go", from: "if holder != x.number && x.free[role] {", to: "if holder != x.number && x.free[role] && false {",
		promise: "a chaos run fails if a node that trusts a term has no lock",
		tests:   []tests{inLaboratory("model/trace", "^TestSeenMomentsAreJudged$")}, says: "two looks without the lock",
	},
	{
		name: "trace: a term may begin while another node trusts an earlier life",
		file: "lab/model/trace/observed.go", from: "case reunion && other.life != c.server.life", to: "case reunion && other.life > c.server.life",
		promise: "a chaos run fails if a term begins before the reunion",
		tests:   []tests{inLaboratory("model/trace", "^TestSeenMomentsAreJudged$")}, says: "a begin before the reunion",
	},
	{
		name: "trace: a session may end under trust",
		file: "lab/model/trace/observed.go", from: "if len(x.leads) > 0 && !x.closed && c.must", to: "if len(x.leads) < 0 && !x.closed && c.must",
		promise: "a chaos run fails if a server frees the locks of a leader",
		tests:   []tests{inLaboratory("model/trace", "^TestSeenMomentsAreJudged$")}, says: "a session that ends early",
	},
	{
		name: "chaos: the end of a silent session is not read",
		file: "lab/chaos/moments.go", from: "return steps.IdleEnds, true", to: "return \"\", true",
		promise: "a chaos run sees which sessions end",
		tests:   []tests{inLaboratory("chaos", "^TestEndingsAreReadFromTheLog$")}, says: "the log has",
	},
	{
		name: "chaos: a torn line of the log is not read",
		file: "lab/chaos/moments.go", from: "var logLine = regexp.MustCompile(`(", to: "var logLine = regexp.MustCompile(`^(",
		promise: "a chaos run sees each crash of the server",
		tests:   []tests{inLaboratory("chaos", "^TestEndingsAreReadFromTheLog$")}, says: "the log has",
	},
	{
		name: "chaos: a fast shutdown ends no session",
		file: "lab/chaos/moments.go", from: "	case stopping && ordered:", to: "	case stopping && !ordered:",
		promise: "a chaos run excuses what the guarantees allow",
		tests:   []tests{inLaboratory("chaos", "^TestEndingsAreReadFromTheLog$")}, says: "the log has",
	},
	{
		name: "chaos: a backlog does not grow between two looks",
		file: "lab/chaos/check/figures.go", from: "max(most, b.Behind+grown)", to: "max(most, b.Behind)",
		promise: "a chaos run reports no figure that was true",
		tests:   []tests{inLaboratory("chaos/check", "^TestViolationsOfHistoriesAreFound$")}, says: "it was 18 to 22",
	},
	{
		name: "trace: a server starts without the crash that was not seen",
		file: "lab/model/trace/observed.go", from: "	if !c.server.down {", to: "	if c.server.down {",
		promise: "a chaos run expects no lock of an earlier life",
		tests:   []tests{inLaboratory("model/trace", "^TestSeenMomentsAreJudged$")}, says: "a start after a crash that was not seen",
	},
	{
		name: "trace: a node may trust a term longer than its agent",
		file: "lab/model/trace/nodes.go", from: "shared && s.At+s.Trust > until+c.Blur", to: "shared && s.At+s.Trust > 2*until+c.Blur",
		promise: "a replay fails if a node trusts longer than its agent",
		tests:   []tests{inLaboratory("model/trace", "^TestHistoryOfAgentIsReplayed$")}, says: "a node trusts longer than its agent",
	},
	{
		name: "trace: an agent may release the role of a node that trusts",
		file: "lab/model/trace/agents.go", from: "	case x == nil || x.closed:\n	case len(x.leads) > 0 ", to: "	case x == nil || x.closed:\n	case len(x.leads) < 0 ",
		promise: "a replay fails if an agent releases the role of a leader",
		tests:   []tests{inLaboratory("model/trace", "^TestHistoryOfAgentIsReplayed$")}, says: "the agent releases the role of a node that trusts",
	},
	{
		name: "trace: an agent may close its connection while a node works",
		file: "lab/model/trace/agents.go", from: "case !s.Forced && x.works() != \"\" && s.At", to: "case s.Forced && x.works() != \"\" && s.At",
		promise: "a replay fails if an agent frees locks under running work",
		tests:   []tests{inLaboratory("model/trace", "^TestHistoryOfAgentIsReplayed$")}, says: "the agent closes while a node works",
	},
	{
		name: "steps of the agent: a node trusts longer than its agent",
		file: "agent/server/client.go", from: "Until: h.trust.limit(), Pending", to: "Until: h.now().Add(c.lease), Pending",
		promise: "1 One leader: no node trusts a term longer than its agent",
		tests:   []tests{inLaboratory("model/trace", "^TestModelsAllowTheStepsOfAnAgent$")}, says: "nodeTrust <= limit",
	},
	{
		name: "steps of the agent: an agent that ends closes its connection under running work",
		file: "agent/server/serve.go", from: "case h.leaving && len(h.connected) == 0:", to: "case h.leaving:",
		promise: "4 Work ends first: an agent keeps its locks while its nodes work",
		tests:   []tests{inLaboratory("model/trace", "^TestModelsAllowTheStepsOfAnAgent$")}, says: "ALONE || limitOver = 0",
	},
}

// stepMutant names an entry of engineMutants, and the guard that the replay must name.
type stepMutant struct{ name, guard string }

func named(list []stepMutant) (all []mutant) {
	for _, s := range list {
		m := mutant{name: s.name} // stale, unless there is one
		for _, other := range engineMutants {
			if other.name == s.name {
				m = other
			}
		}
		m.name, m.says = "steps of the "+m.name, s.guard
		m.tests = []tests{{"lab", "sim", "^TestSchedules$", "-schedules=400 -models-only"}}
		all = append(all, m)
	}
	return all
}
