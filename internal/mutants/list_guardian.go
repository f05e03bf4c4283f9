package main

// guardianMutants break the process that kills a command before its term ends.
var guardianMutants = []mutant{
	{
		name: "guardian: the command is not asked before it is killed",
		file: "cmd/tenure/internal/guardian/guardian.go", from: "	case at >= g.stopAt():\n		g.stop(syscall.SIGTERM)\n", to: "	case at >= g.stopAt():\n		g.kill()\n",
		promise: "a command is asked to end before it is killed",
		tests:   []tests{inCommand("internal/guardian", "^TestKilledBeforeTrustEnds$")},
	},
	{
		name: "guardian: what a killed guardian leaves lives on",
		file: "cmd/tenure/internal/guardian/supervisor.go", from: "	s.killOrphans()\n	return End{Code: 128", to: "	_ = s.killOrphans\n	return End{Code: 128",
		promise: "4 Work ends first: the supervisor kills what a killed guardian leaves",
		tests:   []tests{inCommand("internal/guardian", "^TestTreeDies$")},
	},
	{
		name: "guardian: orphans do not come to the supervisor",
		file: "cmd/tenure/internal/guardian/tree_linux.go", from: "unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)", to: "unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)",
		promise: "4 Work ends first: no descendant escapes",
		tests:   []tests{inCommand("internal/guardian", "^TestTreeDies$")},
	},
	{
		name: "guardian: a stopped guardian is not killed",
		file: "cmd/tenure/internal/guardian/supervisor.go", from: "			if now() >= s.killAt() {\n				s.killGuardian()\n", to: "			if now() >= s.killAt() {\n				_ = s.killGuardian\n",
		promise: "4 Work ends first: the supervisor does the guardian's work if that is stopped",
		tests:   []tests{inCommand("internal/guardian", "^TestTreeDies$")}, hangs: true,
	},
	{
		name: "guardian: trust is not followed",
		file: "cmd/tenure/internal/guardian/supervisor.go", from: "	s.tell(order{Deadline: trust})\n", to: "	_ = order{Deadline: trust}\n",
		promise: "7 Someone leads: a command lives as long as its seat is renewed",
		tests:   []tests{inCommand("internal/guardian", "^TestRenewed$")},
	},
	{
		name: "guardian: children of others are killed",
		file: "cmd/tenure/internal/guardian/living.go", from: "	return killOrphans(slices.Concat(foreign, g.known))\n", to: "	return killOrphans(slices.Concat(foreign[:0], g.known))\n",
		promise: "what the supervisor had started before is left alone",
		tests:   []tests{inCommand("internal/guardian", "^TestForeignChildrenLive$")},
	},
	{
		name: "guardian: commands of other seats are killed",
		file: "cmd/tenure/internal/guardian/living.go", from: "	return killOrphans(slices.Concat(foreign, g.known))\n", to: "	return killOrphans(slices.Concat(foreign, g.known[:0]))\n",
		promise: "commands of other seats are left alone",
		tests:   []tests{inCommand("internal/guardian", "^TestSeveral$|^TestManyBeginWhileOneIsKilled$")},
	},
}
