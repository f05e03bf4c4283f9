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
