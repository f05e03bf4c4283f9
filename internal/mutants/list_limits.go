package main

// limitMutants break the limits of what programs configure and return.
var limitMutants = []mutant{
	{
		name: "engine: a load that no database can store is published",
		file: "load.go", from: "			s.last = load.published()\n", to: "			s.last = load\n",
		promise: "7 Someone leads: a function Load does not end the heartbeats",
		tests:   []tests{in(".", "^TestLoadIsPublishedWithinItsLimits$")}, says: "the load",
	},
	{
		name: "engine: the longest delay of a retry strategy overflows",
		file: "acquire.go", from: "min(max(delay, 0), timespan.Longest)", to: "max(delay, 0*timespan.Longest)",
		promise: "7 Someone leads: failed work leaves the role to other candidates",
		tests:   []tests{in(".", "^TestLongestDelayOfRetryStrategyIsKept$/^WorkRetry$")}, says: "calls of the work in an hour",
	},
	{
		name: "engine: a FailoverWait that overflows is accepted",
		file: "config.go", from: "d.value > timespan.Longest {", to: "d.value/2 > 16*timespan.Longest {",
		promise: "1 One leader: a term on another server waits",
		tests:   []tests{in(".", "^TestConfigRejectsInvalidSettings$")}, says: "and at most 87600h",
	},
	{
		name: "agent: a role is released twice in one call",
		file: "agent/server/arbiter.go", from: "twice := named[role.Name()]; twice {", to: "twice := named[role.Name()]; twice && role.Name() == \"\" {",
		promise: "7 Someone leads: a node ends no session of other nodes",
		tests:   []tests{in("agent", "^TestNodeThatReleasesRoleTwiceIsRefused$")}, says: "releasing a role twice in one call",
	},
	{
		name: "postgres: a node that leaves a role to others for very long fails the attempts of all",
		file: "postgres/terms.go", from: "min(w.yieldFor.Milliseconds(), math.MaxInt32)", to: "max(w.yieldFor.Milliseconds(), -math.MaxInt32)",
		promise: "7 Someone leads: an attempt of one node fails for none of the others",
		tests:   []tests{in("agent", "^TestNodeMayYieldForVeryLong$")}, says: "a role whose last term is another one",
	},
	{
		name: "processor: a retry strategy that panics ends the program",
		file: "processor/batch.go", from: "reason, _ := usercode.Call(func() { delay, again = l.config.Retry.NextDelay(attempts) })", to: "reason, _ := usercode.Call(func() {}); delay, again = l.config.Retry.NextDelay(attempts)",
		promise: "7 Someone leads: code of the user ends no program",
		tests:   []tests{in("processor", "^TestPanicOfRetryStrategyIsCaught$")}, says: "the retry strategy of a user panics",
	},
	{
		name: "engine: the time to open a session does not grow",
		file: "node.go", from: "		series.Note(begun, err)", to: "_ = begun",
		promise: "nodes open sessions again after a restart, however many there are",
		tests:   []tests{in(".", "^TestOpenTimeoutGrows$")}, says: "openings that take 50s",
	},
	{
		name: "engine: every failed attempt extends the next one",
		file: "internal/openlimit/openlimit.go", from: "!s.late && errors.Is(err, context.DeadlineExceeded)", to: "!s.late && !errors.Is(err, nil)",
		promise: "a server that hangs is given up in time",
		tests:   []tests{in(".", "^TestOpenTimeoutGrowsAfterSlowAttempts$")}, says: "the first attempt after failures that were quick",
	},
	{
		name: "postgres: the time to connect does not grow",
		file: "internal/pgdial/late.go", from: "	d.late.Note(begun, err)", to: "_, _ = begun, err",
		promise: "nodes open sessions again after a restart, however many there are",
		tests:   []tests{in("internal/pgdial", "^TestSlowServerGetsMoreTime$")}, says: "the attempt that took too long was not noted",
	},
	{
		name: "postgres: a server that is not reached gets more time",
		file: "internal/pgdial/late.go", from: "	if !reached {", to: "	if !reached && begun < 0 {",
		promise: "a server that hangs is given up in time",
		tests:   []tests{in("internal/pgdial", "^TestUnreachedServerGetsNoMoreTime$")}, says: "a server that was not reached was noted",
	},
	{
		name: "postgres: an installation is removed under a lost node",
		file: "postgres/installation.go", from: "if err != nil || len(trusting) == 0 {", to: "if err != nil || len(trusting) >= 0 {",
		promise: "1 One leader: another mode waits until all trust has ended",
		tests:   []tests{in("postgres", "^TestInstallationStaysWhileLostNodeMayTrustItsTerms$")}, says: "want ErrInstallationInUse and the node",
	},
	{
		name: "cluster: a request before the member can receive it is lost",
		file: "drain.go", from: "		n.handleNodeRequestLocked(*earlier)\n", to: "		_ = *earlier\n",
		promise: "a drained node accepts no work",
		tests:   []tests{in(".", "^TestRequestBeforeOnDrainIsRepeated$")}, says: "want the one to drain",
	},
}
