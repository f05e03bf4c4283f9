package promises

// engineConstants are the numbers of the how-to pages that belong to the engine and to
// packages for elections.
var engineConstants = []Constant{
	{
		In: on(
			deploy, "+ the lease (10 s)",
			lead, "with a lease of 10 s",
		),
		File: "config.go", From: "cmp.Or(c.Lease, 10*time.Second)", Value: "10*time.Second",
		Tests: by(".", "^TestZeroConfigGetsDefaults$"), Says: "want {Lease:10s",
	},
	{
		In: on(
			formCluster, "once per check interval (5 s)",
			lead, "for one check interval (5 s)",
			runCommand, "`--check-interval` (5 s)",
		),
		File: "config.go", From: "cmp.Or(c.CheckInterval, 5*time.Second)", Value: "5*time.Second",
		Tests: by(".", "^TestZeroConfigGetsDefaults$"), Says: "CheckInterval:50s",
	},
	{
		In:   on(lead, "shorter than `FenceTimeout` (5 s)"),
		File: "config.go", From: "min(5*time.Second, max(c.LockTimeout/2", Value: "5*time.Second",
		Tests: by(".", "^TestFenceTimeoutAndLockTimeoutDefaultsFollowEachOther$"), Says: "1m0s and 0s became 1m0s and 30s",
	},
	{
		In:   on(deploy, "`--stop-timeout` (10 s)"),
		File: "config.go", From: "cmp.Or(c.StopTimeout, 10*time.Second)", Value: "10*time.Second",
		Tests: by(".", "^TestZeroConfigGetsDefaults$"), Says: "the stop timeout is 1m40s",
	},
	{
		In: on(
			operate, "`--margin` to more than a tenth of the lease",
			testCode, "trust ends a tenth of the",
		),
		File: "config.go", From: "cmp.Or(c.Margin, c.Lease/10)", Value: "c.Lease/10",
		Tests: by(".", "^TestConfigDefaultsFollowLease$"), Says: "margin 3s",
	},
	{
		In:   on(operate, "`--refresh` to less than a third of the lease"),
		File: "config.go", From: "c.RefreshInterval = cmp.Or(c.RefreshInterval, c.Lease/3)", Value: "c.Lease/3",
		Tests: by(".", "^TestConfigDefaultsFollowLease$"), Says: "refresh 10s",
	},
	{
		In:   on(lead, "up to 1 min; a term of 1 min resets it"),
		File: "group.go", From: "const longTerm = 12",
		Tests: by(".", "^TestWorkRetryBeginsAgainAfterLongTerm$"), Says: "attempts [1 2 3",
	},
	{
		In:   on(lead, "a second later after a step-down"),
		File: "transition.go", From: "const stepDownPause = time.Second",
		Tests: by(".", "^TestStepDownWaitsForGuards$"), Says: "leads again",
	},
	{
		In:   on(lead, "does not answer within 4 s"),
		File: "postgres/internal/records/offers.go", From: "offerTimeout = 4 * time.Second",
		Tests: by("postgres", "^TestOfferFailsAfterFourSeconds$"), Says: "the offer failed after",
	},
	{
		In:   on(lead, "the node did not leave within 10 s"),
		File: "internal/singlerole/singlerole.go", From: "const closeTimeout = 10 * time.Second",
		Tests: by("internal/singlerole", "^TestNodeHasTenSecondsToLeave$"), Says: "the node left after 1m40s",
	},
	{
		In:   on(limitLeaders, "`Count` is 1 to 100"),
		File: "slots/slots.go", From: "const MaxCount = 100",
		Tests: by("slots", "^TestConfigIsValidated$"), Says: "Count:101",
	},
	{
		In:   on(limitLeaders, "`PerNode` (default 1)"),
		File: "slots/slots.go", From: "cmp.Or(cfg.PerNode, 1)", Value: "1",
		Tests: by("slots", "^TestNodesHoldOneSlotEach$"),
	},
	{
		In:   on(useAdapters, "(default 500 ms)"),
		File: "adapters/gocron/locker.go", From: "cmp.Or(config.MinInterval, 500*time.Millisecond)", Value: "500*time.Millisecond",
		Tests: byModule("adapters/gocron", "^TestLockerSkipsTicksForHalfASecondByDefault$"), Says: "no tick runs 600ms after",
	},
	{
		In:   on(useAdapters, "from 2 s and"),
		File: "adapters/kubernetes/config.go", From: "cmp.Or(c.RetryPeriod, 2*time.Second)", Value: "2*time.Second",
		Tests: byModule("adapters/kubernetes", "^TestNewRefusesElectorsThatLeadLongerThanTrust$"),
	},
	{
		In:   on(useAdapters, "and 10 s, set them"),
		File: "adapters/kubernetes/config.go", From: "cmp.Or(c.RenewDeadline, 10*time.Second)", Value: "10*time.Second",
		Tests: byModule("adapters/kubernetes", "^TestNewRefusesElectorsThatLeadLongerThanTrust$"),
	},
}

// clusterConstants are the numbers of memberships and of shared roles.
var clusterConstants = []Constant{
	{
		In:   on(formCluster, "heartbeats up to a minute old"),
		File: "cluster/view.go", From: "reread = refresh, rereadIntervals*v.interval", Value: "rereadIntervals*v.interval",
		Tests: by("cluster", "^TestViewReadsAgainIfAReportIsLost$"), Says: "the registry was read 0 times in 1m0s",
	},
	{
		In:   on(formCluster, "`Heartbeat.DeadThreshold` (15 s)"),
		File: "cluster/config.go", From: "defaultDeadThreshold = 15 * time.Second",
		Tests: by("cluster", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the dead threshold is 2m30s",
	},
	{
		In:   on(formCluster, "`Heartbeat.Interval` (5 s)"),
		File: "cluster/config.go", From: "defaultInterval      = 5 * time.Second",
		Tests: by("cluster", "^TestHeartbeatsAreAsFrequentAsTheShorterIntervalSays$"), Says: "the refresh interval is 10s, want 5s",
	},
	{
		In:   on(formCluster, "at most `DrainTimeout` (30 s)"),
		File: "cluster/config.go", From: "defaultDrainTimeout  = 30 * time.Second",
		Tests: by("cluster", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the drain timeout is 5m0s",
	},
	{
		In:   on(formCluster, "`StopTimeout` and two leases"),
		File: "cluster/shutdown.go", From: "+2*lease)", Value: "2", To: "+20*lease)",
		Tests: by("cluster", "^TestZeroConfigGetsDocumentedTimes$"), Says: "a shutdown is forced after",
	},
	{
		In:   on(formCluster, "`MoveDelay` (1 s)"),
		File: "cluster/spread.go", From: "const defaultMoveDelay = time.Second",
		Tests: by("cluster", "^TestRolesMoveOneSecondAfterAChange$"), Says: "roles move",
	},
	{
		In:   on(formCluster, "in batches of 512"),
		File: "cluster/spread_move.go", From: "moveBatch = 512",
		Tests: by("cluster", "^TestRolesMoveInBatchesOf512$"), Says: "roles move at the same time",
	},
	{
		In:   on(formCluster, "at least ten check intervals"),
		File: "cluster/spread_assumption.go", From: "longAdoption  = 10",
		Tests: by("cluster", "^TestMemberKeepsRolesOfOperatorsLonger$"), Says: "the member leads the role",
	},
	{
		In:   on(assignRows, "`PollInterval` (1 s)"),
		File: "assign/config.go", From: "const defaultPollInterval = time.Second",
		Tests: by("assign", "^TestZeroConfigGetsDocumentedLimits$"), Says: "the poll interval is 10s",
	},
	{
		In:   on(assignRows, "`MaxPerNode` (100)"),
		File: "assign/config.go", From: "cmp.Or(c.MaxPerNode, 100)", Value: "100",
		Tests: by("assign", "^TestZeroConfigGetsDocumentedLimits$"), Says: "a node has at most 1000 rows",
	},
}

// eventConstants are the numbers of processors, publishers and schedules.
var eventConstants = []Constant{
	{
		In:   on(processEvents, "data has at most 1 MiB"),
		File: "eventstore/eventstore.go", From: "const MaxData = 1 << 20",
		Tests: by("eventstore", "^TestAppendRejectsInvalidEvents$"), Says: "data over the limit",
	},
	{
		In:   on(processEvents, "poll for new rows, after 1 to"),
		File: "processor/config.go", From: "{&c.PollInterval, time.Second}", Value: "time.Second",
		Tests: by("processor", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the poll interval is 10s",
	},
	{
		In:   on(processEvents, "to 5 s. To wake", processEvents, "not paused continue within 5 s"),
		File: "processor/config.go", From: "max(c.PollInterval, 5*time.Second)", Value: "5*time.Second",
		Tests: by("processor", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the longest poll interval is 50s",
	},
	{
		In:   on(processEvents, "nine tenths of the node's lease (9 s by default)"),
		File: "config.go", From: "c.Margin = cmp.Or(c.Margin, c.Lease/10)", Value: "c.Lease/10", To: "c.Margin = cmp.Or(c.Margin, c.Lease/100)",
		Tests: by(".", "^TestZeroConfigGetsDefaults$"), Says: "Margin:100ms",
	},
	{
		In:   on(processEvents, "`HandleTimeout` (30 s)"),
		File: "processor/config.go", From: "{&c.HandleTimeout, 30 * time.Second}", Value: "30 * time.Second",
		Tests: by("processor", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the handle timeout is 5m0s",
	},
	{
		In: on(
			processEvents, "`Retry`: 1 s, doubling to",
			publishEvents, "retried after 1 s to",
		),
		File: "processor/config.go", From: "ExponentialBackoff{Base: time.Second", Value: "time.Second",
		Tests: by("processor", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the pause after attempt 1",
	},
	{
		In: on(
			processEvents, "to 1 min), and",
			publishEvents, "to 1 min, for",
		),
		File: "processor/config.go", From: "Max: time.Minute", Value: "time.Minute",
		Tests: by("processor", "^TestZeroConfigGetsDocumentedTimes$"), Says: "the pause after attempt 20",
	},
	{
		In: on(
			processEvents, "After `MaxAttempts` (10)",
			publishEvents, "after `MaxAttempts` (10)",
		),
		File: "processor/config.go", From: "cmp.Or(c.MaxAttempts, 10)", Value: "10",
		Tests: by("processor", "^TestZeroConfigGetsDocumentedTimes$"), Says: "an event has 100 attempts",
	},
	{
		In:   on(processEvents, "It waits 5 s for writers"),
		File: "processor/repair_queries.go", From: "SET LOCAL lock_timeout = '5s'", Value: "5s",
		Tests: by("processor", "^TestRepairAssignsMissingTransactionIDs$"), Says: "it waited for",
	},
	{
		In:   on(processEvents, "repeated after 50 ms to"),
		File: "processor/fault.go", From: "Base: 50 * time.Millisecond", Value: "50 * time.Millisecond",
		Tests: by("processor", "^TestDatabaseErrorsAreRetriedAfterDocumentedPauses$"), Says: "the pause after error 1",
	},
	{
		In:   on(processEvents, "ms to 30 s |"),
		File: "processor/fault.go", From: "Max: 30 * time.Second", Value: "30 * time.Second",
		Tests: by("processor", "^TestDatabaseErrorsAreRetriedAfterDocumentedPauses$"), Says: "the pause after error 20",
	},
	{
		In:   on(publishEvents, "timestamps within 5 minutes"),
		File: "outbox/webhook/signature.go", From: "const ReplayWindow = 5 * time.Minute",
		Tests: by("outbox/webhook", "^TestVerifyRejectsInvalidRequests$"),
	},
	{
		In:   on(publishEvents, "up to `MaxRetryAfter` (10 min)"),
		File: "outbox/webhook/config.go", From: "cmp.Or(c.MaxRetryAfter, 10*time.Minute)", Value: "10*time.Minute",
		Tests: by("outbox/webhook", "^TestZeroConfigGetsDocumentedLimits$"), Says: "the longest Retry-After is 1h40m0s",
	},
	{
		In:   on(publishEvents, "larger than `MaxBody` (2 MiB)"),
		File: "outbox/webhook/config.go", From: "cmp.Or(c.MaxBody, 2<<20)", Value: "2<<20",
		Tests: by("outbox/webhook", "^TestZeroConfigGetsDocumentedLimits$"), Says: "the largest body has 20971520 bytes",
	},
	{
		In:   on(publishEvents, "no response within `Timeout` (10 s)"),
		File: "outbox/webhook/config.go", From: "cmp.Or(c.Timeout, 10*time.Second)", Value: "10*time.Second",
		Tests: by("outbox/webhook", "^TestZeroConfigGetsDocumentedLimits$"), Says: "the timeout is 1m40s",
	},
	{
		In:   on(reachLeader, "for `Config.Wait` (10 s)"),
		File: "leaderhttp/proxy.go", From: "cmp.Or(c.Wait, 10*time.Second)", Value: "10*time.Second",
		Tests: by("leaderhttp", "^TestZeroConfigGetsDocumentedLimits$"), Says: "requests wait for 1m40s",
	},
	{
		In:   on(reachLeader, "`Config.MaxWaiting` (1,024)"),
		File: "leaderhttp/proxy.go", From: "cmp.Or(c.MaxWaiting, 1024)", Value: "1024",
		Tests: by("leaderhttp", "^TestZeroConfigGetsDocumentedLimits$"), Says: "want 1024 and 6",
	},
	{
		In:   on(reachLeader, "for a tenth of `Config.Wait`"),
		File: "leaderhttp/router.go", From: "r.proxy.config.Wait/10", To: "r.proxy.config.Wait",
		Tests: by("leaderhttp", "^TestForwardedRequestWaitsForATenth$"), Says: "the answer is 508 after",
	},
	{
		In:   on(reachLeader, "within a quarter of a second"),
		File: "leaderhttp/cut.go", From: "const cutDelay = 250 * time.Millisecond",
		Tests: by("leaderhttp", "^TestStreamsAreCutWhenTermEnds$"), Says: "want a quarter of a second",
	},
	{
		In:   on(scheduleJobs, "UTC; at least 1 s"),
		File: "cron/expression.go", From: "const shortest = time.Second",
		Tests: by("cron", "^TestParseRejectsInvalidExpressions$"),
	},
	{
		In:   on(scheduleJobs, "`Config.Grace` (1 min)"),
		File: "cron/scheduler.go", From: "cmp.Or(config.Grace, time.Minute)", Value: "time.Minute",
		Tests: by("cron", "^TestManyMissedTicksShareARow$"), Says: "want 101 for at least",
	},
	{
		In:   on(scheduleJobs, "`CatchUpLimit` (100)"),
		File: "cron/schedule.go", From: "defaultCatchUp = 100",
		Tests: by("cron", "^TestLastHundredMissedTicksRunByDefault$"), Says: "110 missed ticks ran",
	},
}
