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
		file: "node.go", from: "n.open(ctx, attempt.Limit)", to: "n.open(ctx, openlimit.Session.Least)",
		promise: "nodes open sessions again after a restart, however many there are",
		tests:   []tests{in(".", "^TestOpenTimeoutGrows$")}, says: "to open: the node was open after",
	},
	{
		name: "engine: no time passes for the limits of attempts",
		file: "internal/openlimit/openlimit.go", from: "grown := time.Duration(r.Growth * float64(now-s.since))", to: "grown := time.Duration(r.Growth * 0)",
		promise: "nodes open sessions again after a restart, however many there are",
		tests: []tests{
			in(".", "^TestOpenTimeoutGrows$"), in("agent/server", "^TestAgentOpensSessionOnSlowServer$"),
			in("internal/pgdial", "^TestSessionIsOpenedOnSlowServer$"),
		}, says: "to open: the node was open after",
	},
	{
		name: "agent: the time to open a session does not grow",
		file: "agent/server/server.go", from: "s.openHost(ctx, attempt.Limit)", to: "s.openHost(ctx, openlimit.Session.Least)",
		promise: "an agent opens a session on a slow server",
		tests:   []tests{in("agent/server", "^TestAgentOpensSessionOnSlowServer$")}, says: "to open: got opened",
	},
	{
		name: "agent: attempts to open a session that took too long are forgotten",
		file: "agent/server/server.go", from: "			attempt.Fail(err)", to: "_ = err",
		promise: "an agent opens a session on a slow server",
		tests:   []tests{in("agent/server", "^TestAgentOpensSessionOnSlowServer$")}, says: "to open: got opened",
	},
	{
		name: "engine: every failed attempt extends the next one",
		file: "internal/openlimit/openlimit.go", from: "!s.late && errors.Is(err, context.DeadlineExceeded)", to: "!s.late && !errors.Is(err, nil)",
		promise: "a server that hangs is given up in time",
		tests:   []tests{in(".", "^TestOpenTimeoutGrowsAfterSlowAttempts$")}, says: "the first attempt after failures that were quick",
	},
	{
		name: "postgres: the time to connect does not grow",
		file: "internal/pgdial/late.go", from: "		attempt.Fail(openlimit.Explain(ctx, err))", to: "_ = openlimit.Explain(ctx, err)",
		promise: "nodes open sessions again after a restart, however many there are",
		tests:   []tests{in("internal/pgdial", "^TestSessionIsOpenedOnSlowServer$")}, says: "no session was opened within an hour",
	},
	{
		name: "postgres: a connection of a session ends the series of late attempts",
		file: "internal/pgdial/late.go", from: "if !o.Opening && attempt.Quick() {", to: "if attempt.Quick() {",
		promise: "nodes open sessions again after a restart, however many there are",
		tests:   []tests{in("internal/pgdial", "^TestSessionIsOpenedIfItsSecondConnectionIsSlow$")}, says: "no session was opened within an hour",
	},
	{
		name: "postgres: a connection of a backend's session ends the series of late attempts",
		file: "postgres/internal/link/connect.go", from: "LimitsOf(use), Opening: true}", to: "LimitsOf(use)}",
		promise: "nodes open sessions again after a restart, however many there are",
		tests:   []tests{in("postgres", "^TestSessionAndNotConnectionEndsSeries$")}, says: "no session is open after",
	},
	{
		name: "postgres: the limits of attempts stay long after a session was opened",
		file: "postgres/open.go", from: "	b.connect.Dialer.Opened()", to: "_ = b.connect",
		promise: "a server that hangs is given up in time",
		tests:   []tests{in("postgres", "^TestSessionAndNotConnectionEndsSeries$")}, says: "a server that hangs was given up after",
	},
	{
		name: "postgres: the time of a pool to connect does not grow",
		file: "internal/pgdial/late.go", from: "context.AfterFunc(ctx, func() { attempt.Fail(ctx.Err()) })", to: "_ = ctx",
		promise: "pools connect to a slow server",
		tests:   []tests{in("internal/pgdial", "^TestPoolConnectsToSlowServer$")}, says: "the pool has no connection after an hour",
	},
	{
		name: "postgres: a short call ends the attempt to connect",
		file: "postgres/internal/link/reader.go", from: "context.WithTimeout(context.WithoutCancel(ctx), openlimit.Session.Most)", to: "context.WithTimeout(ctx, openlimit.Session.Most)",
		promise: "reads connect to a slow server",
		tests:   []tests{in("postgres", "^TestShortCallsReadOnSlowServer$")}, says: "has read",
	},
	{
		name: "postgres: a watch connection that needs more than 5 s never comes back",
		file: "postgres/ring.go", from: "context.WithTimeout(context.Background(), openlimit.Session.Most)", to: "context.WithTimeout(context.Background(), min(callTimeout, openlimit.Session.Most))",
		promise: "the watch is back after its connection was lost",
		tests:   []tests{in("postgres", "^TestWatchReconnectsToSlowServer$")}, says: "has not come back",
	},
	{
		name: "postgres: a server that is not reached gets more time",
		file: "internal/pgdial/late.go", from: "	case reached:", to: "	case reached || err != nil:",
		promise: "a server that hangs is given up in time",
		tests:   []tests{in("internal/pgdial", "^TestUnreachedServerGetsNoMoreTime$")}, says: "got an attempt of",
	},
	{
		name: "postgres: an installation is removed under a lost node",
		file: "postgres/internal/install/installation.go", from: "if err != nil || len(trusting) == 0 {", to: "if err != nil || len(trusting) >= 0 {",
		promise: "1 One leader: another mode waits until all trust has ended",
		tests:   []tests{in("postgres", "^TestInstallationStaysWhileLostNodeMayTrustItsTerms$")}, says: "want ErrInstallationInUse and the node",
	},
	{
		name: "cluster: a request before the member can receive it is lost",
		file: "drain.go", from: "		n.handleNodeRequestLocked(*earlier)\n", to: "		_ = *earlier\n",
		promise: "a drained node accepts no work",
		tests:   []tests{in(".", "^TestRequestBeforeOnDrainIsRepeated$")}, says: "want the one to drain",
	},
	{
		name: "postgres: the watch at rest makes short attempts",
		file: "postgres/migrations/0001_functions.up.sql", from: "ring_ms constant integer := 2000;", to: "ring_ms constant integer := 400;",
		promise: "8 Idle is cheap: attempts of a watch at rest are few",
		tests:   []tests{in("postgres", "^TestWatchAtRestMakesLongAttempts$")}, says: "the watch made no attempt",
	},
	{
		name: "postgres: an attempt lasts until the server logs it",
		file: "postgres/migrations/0001_functions.up.sql", from: "WHEN current_setting('log_lock_waits')::boolean", to: "WHEN false",
		promise: "waiting nodes do not fill the log",
		tests:   []tests{in("postgres", "^TestWatchAtRestStaysOutOfTheLog$")}, says: "the server's log reports the wait",
	},
	{
		name: "postgres: the watch of a young node makes long attempts",
		file: "postgres/migrations/0001_functions.up.sql", from: "young_part constant integer := 5;", to: "young_part constant integer := 1;",
		promise: "7 Someone leads: a node that joins after a younger one is watched soon",
		tests:   []tests{in("postgres", "^TestWatchOfYoungNodeMakesShortAttempts$")}, says: "the longest attempt of a young node took",
	},
	{
		name: "postgres: no join wakes the watch of the oldest node",
		file: "postgres/session.go", from: "\t\te.joined.Store(true)\n", to: "\t\te.joined.Store(false)\n",
		promise: "7 Someone leads: the death of a node that has just joined is noticed",
		tests:   []tests{in("postgres", "^TestOldestNodeWatchesNodeThatJoins$")}, says: "the oldest node watches a node",
	},
	{
		name: "postgres: a statement of the watch begins while a cancellation is on its way",
		file: "postgres/watching.go", from: "\tcase <-pending:\n", to: "\tdefault:\n",
		promise: "7 Someone leads: no cancellation reaches the statement that records a death",
		tests:   []tests{in("postgres", "^TestWatchWaitsForItsCancellation$")}, says: "the call ended before its cancellation was answered",
	},
}
