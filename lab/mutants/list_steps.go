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
		file: "lab/chaos/moments.go", from: "kind, failed[pid] = steps.IdleEnds, true", to: "failed[pid] = true",
		promise: "a chaos run sees which sessions end",
		tests:   []tests{inLaboratory("chaos", "^TestEndingsAreReadFromTheLog$")}, says: "the log has",
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
