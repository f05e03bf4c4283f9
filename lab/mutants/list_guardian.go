package main

// guardianMutants break the process that kills a command before its term ends.
var guardianMutants = []mutant{
	{
		name: "guardian: the command is not asked before it is killed",
		file: "internal/program/guardian/guardian.go", from: "	case at >= g.stopAt():\n		g.stop(syscall.SIGTERM, g.limits.Grace)\n", to: "	case at >= g.stopAt():\n		g.kill()\n",
		promise: "a command is asked to end before it is killed",
		tests:   []tests{inShared("guardian", "^TestCommandIsKilledBeforeTrustEnds$")}, says: "was not asked to end",
	},
	{
		name: "guardian: processes left by a killed guardian keep running",
		file: "internal/program/guardian/supervisor.go", from: "	s.killOrphans()\n	if !s.begun", to: "	_ = s.killOrphans\n	if !s.begun",
		promise: "4 Work ends first: the supervisor kills the processes left by a killed guardian",
		tests:   []tests{inShared("guardian", "^TestWholeTreeIsKilled$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the death of a guardian at its start counts as the end of a command",
		file: "internal/program/guardian/supervisor.go", from: "	if !s.begun && !s.killed {", to: "	if s.begun && !s.killed {",
		promise: "a guardian that cannot start its command is reported as such",
		tests:   []tests{inShared("guardian", "^TestGuardianThatDiesAtItsStartHasStartedNothing$")}, says: "a guardian that died at its start",
	},
	{
		name: "guardian: a command whose guardian is killed is restarted for ever",
		file: "cmd/tenure/internal/cli/run/lead.go", from: "if !end.GuardianLost {", to: "if end.Stopped {",
		promise: "a node whose guardians are killed gives up the role",
		tests:   []tests{inCommand("internal/cli", "^TestStandbyTakesOverFromNodeWhoseGuardianIsKilled$")}, says: "a node whose guardian was killed each time ran its command",
	},
	{
		name: "guardian: a scheduled command that cannot start is not tried again",
		file: "cmd/tenure/internal/cli/cron/command.go", from: "case err != nil && pause.Restarts() < lead.DefaultRestarts:", to: "case err != nil && pause.Restarts() < 0*lead.DefaultRestarts:",
		promise: "a node that cannot start a scheduled command tries again before it resigns",
		tests:   []tests{inCommand("internal/cli", "^TestStandbyRepeatsRunThatCannotStart$")}, says: "failed starts, want 6",
	},
	{
		name: "guardian: a scheduled command that cannot start interrupts the others",
		file: "cmd/tenure/internal/cli/cron/command.go", from: "	if c.running.Load() > 0 {", to: "	if c.running.Load() < 0 {",
		promise: "a node that cannot start a scheduled command does not resign while another one runs",
		tests:   []tests{inCommand("internal/cli", "^TestRunThatCannotStartInterruptsNoOther$")}, says: "the node resigned while another command ran",
	},
	{
		name: "guardian: the first process of a container does not wait for orphans",
		file: "cmd/tenure/internal/cli/program.go", from: "if os.Getpid() == 1 {", to: "if os.Getpid() == 0 {",
		promise: "the first process of a container waits for its orphans",
		tests:   []tests{inCommand("internal/cli", "^TestFirstProcessReapsOrphans$")}, says: "the first process waits for its orphans",
	},
	{
		name: "guardian: the wait for orphans steals the exit codes of other children",
		file: "internal/program/guardian/orphans.go", from: "if !slices.Contains(g.known, child) {", to: "if !slices.Contains(g.known, child) || child != 0 {",
		promise: "the exit codes of a program's own children are not lost",
		tests:   []tests{inShared("guardian", "^TestReapingLeavesOwnChildrenAlone$")}, says: "its status was stolen",
	},
	{
		name: "guardian: a log without a reader ends the node",
		file: "internal/program/console/closed.go", from: "syscall.SIGPIPE)", to: "syscall.SIGHUP)",
		promise: "a node keeps its roles if its log has no reader",
		tests:   []tests{inCommand("internal/cli", "^TestClosedLogEndsNoProgram$")}, says: "a program whose log has no reader ended with",
	},
	{
		name: "guardian: a graceful end has no more time than a loss",
		file: "cmd/tenure/internal/cli/run/lead.go", from: "func() time.Duration { return l.stopTimeout }", to: "func() time.Duration { return l.plan.Grace }",
		promise: "a command has --stop-timeout to end when its node gives up the role",
		tests:   []tests{inCommand("internal/cli", "^TestCommandFinishesBeforeGracefulEnd$")}, says: "a command that needs 3 s for a graceful end",
	},
	{
		name: "guardian: children of an orphan that has ended are not listed",
		file: "internal/program/guardian/tree_linux.go", from: "	return len(orphans) == 0 && len(", to: "	return len(",
		promise: "4 Work ends first: no process of a killed guardian is missed",
		tests:   []tests{inShared("guardian", "^TestOrphansAreListedUntilThereAreNone$")}, says: "nvariant 4",
	},
	{
		name: "guardian: orphans are not adopted by the supervisor",
		file: "internal/program/guardian/tree_linux.go", from: "unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)", to: "unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)",
		promise: "4 Work ends first: no descendant escapes",
		tests:   []tests{inShared("guardian", "^TestWholeTreeIsKilled$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a stopped guardian is not killed",
		file: "internal/program/guardian/supervisor.go", from: "			if now() >= s.killAt() {\n				s.killGuardian()\n", to: "			if now() >= s.killAt() {\n				_ = s.killGuardian\n",
		promise: "4 Work ends first: the supervisor does the guardian's work if that is stopped",
		tests:   []tests{inShared("guardian", "^TestSupervisorSendsOrders$")}, says: "nvariant 4",
	},
	{
		name: "guardian: trust is not followed",
		file: "internal/program/guardian/supervisor.go", from: "	s.sendOrder(order{Deadline: trust})\n", to: "	_ = order{Deadline: trust}\n",
		promise: "7 Someone leads: a command runs as long as its term is renewed",
		tests:   []tests{inShared("guardian", "^TestCommandRunsWhileTermIsRenewed$")}, says: "the command ended with",
	},
	{
		name: "guardian: children of others are killed",
		file: "internal/program/guardian/guardians.go", from: "	return killOrphans(slices.Concat(foreign, g.known))\n", to: "	return killOrphans(slices.Concat(foreign[:0], g.known))\n",
		promise: "earlier children of the supervisor are not killed",
		tests:   []tests{inShared("guardian", "^TestForeignChildrenSurvive$")}, says: "the foreign child",
	},
	{
		name: "guardian: commands of other terms are killed",
		file: "internal/program/guardian/guardians.go", from: "	return killOrphans(slices.Concat(foreign, g.known))\n", to: "	return killOrphans(slices.Concat(foreign, g.known[:0]))\n",
		promise: "commands of other terms are not killed",
		tests:   []tests{inShared("guardian", "^TestConcurrentCommandsAreIndependent$|^TestStartingGuardianIsNotAnOrphan$")}, says: "died with command",
	},

	// What the guardian does without the supervisor.
	{
		name: "guardian: a guardian outlives its supervisor",
		file: "internal/program/guardian/guardian.go", from: "				orders, g.orphaned = nil, true\n				g.kill()\n", to: "				orders, g.orphaned = nil, true\n				_ = g.kill\n",
		promise: "4 Work ends first: a guardian whose supervisor is gone kills the command",
		tests:   []tests{inShared("guardian", "^TestGuardianKillsAllWhenSupervisorDies$")}, says: "nvariant 4",
	},
	{
		name: "guardian: only the command's process group is killed",
		file: "internal/program/guardian/tree_linux.go", from: "	for _, pid := range descendants(os.Getpid(), nil) {\n		_ = syscall.Kill(pid, syscall.SIGKILL)", to: "	for _, pid := range descendants(os.Getpid(), nil)[:0] {\n		_ = syscall.Kill(pid, syscall.SIGKILL)",
		promise: "4 Work ends first: no descendant escapes",
		tests:   []tests{inShared("guardian", "^TestGuardianKillsAllWhenSupervisorDies$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the guardian kills after the end of trust",
		file: "internal/program/guardian/guardian.go", from: "at := g.trust.add(-g.limits.Lead)", to: "at := g.trust.add(+g.limits.Lead)",
		promise: "4 Work ends first: a command does not outlive the trust in its term",
		tests:   []tests{inShared("guardian", "^TestGuardianKillsBeforeTrustEnds$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a command that does not end is not killed when its time is over",
		file: "internal/program/guardian/guardian.go", from: "		at = min(at, g.graceTo)\n", to: "		_ = min(at, g.graceTo)\n",
		promise: "7 Someone leads: a command has its grace to end, then it is killed",
		tests:   []tests{inShared("guardian", "^TestGuardianKillsBeforeTrustEnds$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the guardian asks when trust has ended",
		file: "internal/program/guardian/guardian.go", from: "return g.trust.add(-g.limits.Grace) }", to: "return g.trust.add(0 * g.limits.Grace) }",
		promise: "a command is asked to end before it is killed",
		tests:   []tests{inShared("guardian", "^TestCommandIsKilledBeforeTrustEnds$")}, says: "was not asked to end",
	},
	{
		name: "guardian: everything is killed once",
		file: "internal/program/guardian/guardian.go", from: "	case g.killing:\n		g.kill()\n", to: "	case g.killing:\n		_ = g.kill\n",
		promise: "4 Work ends first: what was forked during a kill is killed by the next",
		tests:   []tests{inShared("guardian", "^TestKillRepeatsForForkedProcesses$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the guardian does not wait for descendants",
		file: "internal/program/guardian/guardian.go", from: "				g.commandEnded(e.status)\n", to: "				g.commandEnded(e.status); ends = nil\n",
		promise: "4 Work ends first: a role is released when no process of the command is running",
		tests:   []tests{inShared("guardian", "^TestExitCodesOfCommandsAreReported$|^TestWholeTreeIsKilled$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a stopped command is not resumed to end",
		file: "internal/program/guardian/guardian.go", from: "	_ = syscall.Kill(-g.command, syscall.SIGCONT)", to: "	_ = syscall.SIGCONT",
		promise: "a command is asked to end before it is killed",
		tests:   []tests{inShared("guardian", "^TestStoppedCommandIsSignaled$")}, says: "the command ended with",
	},
	{
		name: "guardian: processes left by the command are killed without being asked",
		file: "internal/program/guardian/guardian.go", from: "		signalLeft(g.command, signaled, syscall.SIGTERM)\n", to: "		_, _ = signaled, signalLeft\n",
		promise: "processes left by a command are also asked to end",
		tests:   []tests{inShared("guardian", "^TestExitCodesOfCommandsAreReported$")}, says: "was not asked to end",
	},
	{
		name: "guardian: the guardian does not keep the lock",
		file: "internal/program/guardian/control.go", from: "	if anchor == nil {\n", to: "	if anchor == nil || anchor != nil {\n",
		promise: "4 Work ends first: the lock is held until no process of the command is running, even if the supervisor dies",
		tests:   []tests{inShared("guardian", "^TestGuardianHoldsLockConnection$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a command is started when trust is about to end",
		file: "internal/program/guardian/guardian.go", from: "	for now() >= min(g.stopAt(), g.killAt()) {\n", to: "	for now() >= min(g.stopAt(), g.killAt()) && false {\n",
		promise: "4 Work ends first: nothing is started that would have to be killed immediately",
		tests:   []tests{inShared("guardian", "^TestGuardianDoesNotStartTooLate$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a command is asked twice",
		file: "internal/program/guardian/tree_linux.go", from: "		if signaled {\n", to: "		if signaled && false {\n",
		promise: "a command is asked once",
		tests:   []tests{inShared("guardian", "^TestGroupIsSignaledOnce$")}, says: "the rest of the group was asked",
	},
	{
		name: "guardian: a pause prolongs trust",
		file: "internal/program/guardian/supervisor.go", from: "	return at.add(s.term.Remaining())\n", to: "	trust := s.term.Remaining(); at = now(); return at.add(trust)\n",
		promise: "4 Work ends first: trust that was measured before a pause does not count from after it",
		tests:   []tests{inShared("guardian", "^TestDeadlineIsNeverTooLate$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a second request to end gives more time",
		file: "internal/program/guardian/guardian.go", from: "	if g.graceTo != 0 || g.killing {\n", to: "	if g.killing {\n",
		promise: "7 Someone leads: a command has its grace to end, then it is killed",
		tests:   []tests{inShared("guardian", "^TestSecondRequestKeepsTheDeadline$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a signal ends the guardian",
		file: "internal/program/guardian/main.go", from: "	ignoreSignals()\n", to: "	_ = ignoreSignals\n",
		promise: "the supervisor decides how to handle a signal",
		tests:   []tests{inShared("guardian", "^TestGuardianIgnoresSignals$")}, says: "the command ended with",
	},
	{
		name: "guardian: a terminal's signals reach the guardian",
		file: "internal/program/guardian/supervisor.go", from: "&syscall.SysProcAttr{Setpgid: true}", to: "&syscall.SysProcAttr{}",
		promise: "the supervisor decides how to handle a signal",
		tests:   []tests{inShared("guardian", "^TestGuardianIgnoresSignals$")}, says: "not in its own",
	},

	// What the kernel and the supervisor do without the guardian.
	{
		name: "guardian: the command outlives its guardian",
		file: "internal/program/guardian/tree_linux.go", from: "Setpgid: true, Pdeathsig: syscall.SIGKILL", to: "Setpgid: true",
		promise: "4 Work ends first: the kernel kills the command of a guardian that was killed",
		tests:   []tests{inShared("guardian", "^TestCommandDiesWithGuardianOfStoppedSupervisor$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the supervisor kills after the end of trust",
		file: "internal/program/guardian/supervisor.go", from: "at := s.trust.add(-s.command.Lead / 2)", to: "at := s.trust.add(+s.command.Lead / 2)",
		promise: "4 Work ends first: a command does not outlive the trust in its term",
		tests:   []tests{inShared("guardian", "^TestSupervisorKillsLateGuardian$")}, says: "nvariant 4",
	},
	{
		name: "guardian: no order to kill when the term is lost",
		file: "internal/program/guardian/supervisor.go", from: "			s.sendOrder(order{Kill: true})\n", to: "			_ = order{Kill: true}\n",
		promise: "4 Work ends first: a command is killed when its term is lost",
		tests:   []tests{inShared("guardian", "^TestSupervisorSendsOrders$")}, says: "no order to kill",
	},
	{
		name: "guardian: a guardian that does not kill is not replaced",
		file: "internal/program/guardian/supervisor.go", from: "			s.limitTo(killSlack)\n", to: "			_ = killSlack\n",
		promise: "4 Work ends first: the supervisor does the guardian's work if that does not",
		tests:   []tests{inShared("guardian", "^TestSupervisorSendsOrders$")}, says: "nvariant 4",
	},
	{
		name: "guardian: a guardian that does not ask is not replaced",
		file: "internal/program/guardian/supervisor.go", from: "			s.limitTo(within + stopSlack)\n", to: "			_ = stopSlack\n",
		promise: "7 Someone leads: the supervisor does the guardian's work if that does not",
		tests:   []tests{inShared("guardian", "^TestSupervisorSendsOrders$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the command is not asked when its term stops",
		file: "internal/program/guardian/supervisor.go", from: "			s.sendOrder(order{Stop: s.command.StopSignal(), Within: within})\n", to: "			_ = order{Stop: s.command.StopSignal()}\n",
		promise: "a command is asked to end before it is killed",
		tests:   []tests{inShared("guardian", "^TestSupervisorSendsOrders$|^TestCommandEndsGracefully$")}, says: "no order to stop the command",
	},
	{
		name: "guardian: a guardian that receives no order keeps running",
		file: "internal/program/guardian/supervisor.go", from: "	if send(s.control, o) != nil {\n		s.killGuardian()", to: "	if send(s.control, o) != nil {\n		_ = s.killGuardian",
		promise: "4 Work ends first: a guardian that cannot receive orders is killed",
		tests:   []tests{inShared("guardian", "^TestSupervisorSendsOrders$")}, says: "nvariant 4",
	},
	{
		name: "guardian: the supervisor does not wait for orphans",
		file: "internal/program/guardian/supervisor.go", from: "!liveGuardians.killOrphans(s.foreign); pause", to: "!liveGuardians.killOrphans(s.foreign) && false; pause",
		promise: "4 Work ends first: a role is released when no process of the command is running",
		tests:   []tests{inShared("guardian", "^TestWholeTreeIsKilled$")}, says: "nvariant 4",
	},
}
