package main

// commandMutants break the times and limits that the pages about the program state, and
// those of the packages that a program uses beside an election.
var commandMutants = []mutant{
	// A command and its guardian.
	{
		name: "command: it is killed 1 ms before trust ends",
		file: "cmd/tenure/internal/cli/lead/command.go", from: "longestLead  = 100 * time.Millisecond", to: "longestLead  = 1 * time.Millisecond",
		promise: "run-a-command: SIGKILL 100 ms before trust ends",
		tests:   []tests{inCommand("internal/cli/lead", "^TestCommandIsKilledATwentiethOfAShortLeaseBeforeTrustEnds$")}, says: "before trust ends",
	},
	{
		name: "command: it is killed 1 s before trust ends",
		file: "cmd/tenure/internal/cli/lead/command.go", from: "longestLead  = 100 * time.Millisecond", to: "longestLead  = 1000 * time.Millisecond",
		promise: "run-a-command: SIGKILL 100 ms before trust ends",
		tests:   []tests{inCommand("internal/cli/lead", "^TestCommandIsKilledATwentiethOfAShortLeaseBeforeTrustEnds$")}, says: "before trust ends",
	},
	{
		name: "command: its guardian gets half of the lead",
		file: "cmd/tenure/internal/cli/run/lead.go", from: "Lead: l.plan.Lead, Refresh", to: "Lead: l.plan.Lead / 2, Refresh",
		promise: "run-a-command: SIGKILL 100 ms before trust ends",
		tests:   []tests{inCommand("internal/cli", "^TestCommandIsKilled100msBeforeTrustEnds$")}, says: "before trust ended half of the time, want about 100ms",
	},
	{
		name: "command: a guardian that does not kill lives for 2 s",
		file: "internal/program/guardian/supervisor.go", from: "killSlack = 20 * time.Millisecond", to: "killSlack = 2000 * time.Millisecond",
		promise: "4 Work ends first: the supervisor kills a guardian that does not kill",
		tests:   []tests{inShared("guardian", "^TestGuardianThatDoesNotActIsKilledInTime$")}, says: "invariant 4: the supervisor kills a guardian that does not act after",
	},
	{
		name: "command: a guardian that does not ask lives for 2.5 s longer",
		file: "internal/program/guardian/supervisor.go", from: "stopSlack = 250 * time.Millisecond", to: "stopSlack = 2500 * time.Millisecond",
		promise: "4 Work ends first: the supervisor kills a guardian that does not ask the command to end",
		tests:   []tests{inShared("guardian", "^TestGuardianThatDoesNotActIsKilledInTime$")}, says: "invariant 4: the supervisor kills a guardian that does not act after",
	},
	{
		name: "command: a repeated signal counts once for 2 s",
		file: "internal/program/console/interrupt.go", from: "repetition = 250 * time.Millisecond", to: "repetition = 2 * time.Second",
		promise: "cli: a repetition within 250 ms is no second signal, and a later one ends the command immediately",
		tests:   []tests{inShared("console", "^TestRepeatedSignalCountsOnce$")}, says: "from 250ms on",
	},
	{
		name: "command: a run of ten minutes resets the delay",
		file: "cmd/tenure/internal/cli/lead/restart.go", from: "healthyLife   = time.Minute", to: "healthyLife   = 10 * time.Minute",
		promise: "run-a-command: a run of a minute resets the delay",
		tests:   []tests{inCommand("internal/cli/lead", "^TestRestartPoliciesDecideByExitCode$")}, says: "the pause after a run of a minute",
	},
	{
		name: "command: it settles for 20 ms",
		file: "cmd/tenure/internal/cli/lead/flags.go", from: "commandSettle = 200 * time.Millisecond", to: "commandSettle = 20 * time.Millisecond",
		promise: "run-a-command: another node leads 200 ms after the server ended the session",
		tests:   []tests{inCommand("internal/cli/lead", "^TestNodeWithCommandSettlesFor200ms$")}, says: "want 200ms",
	},
	{
		name: "command: a health command may take 100 s",
		file: "cmd/tenure/internal/cli/lead/health.go", from: "longestHealthCheck = 10 * time.Second", to: "longestHealthCheck = 100 * time.Second",
		promise: "run-a-command: a health command fails after --health-every or 10 s, whichever is shorter",
		tests:   []tests{inCommand("internal/cli/lead", "^TestHealthCommandMayTakeTenSeconds$")}, says: "a health command may take",
	},
	{
		name: "command: a password command may take 100 s",
		file: "internal/program/database/password.go", from: "passwordTimeout = 10 * time.Second", to: "passwordTimeout = 100 * time.Second",
		promise: "secure: a password command must end within 10 s",
		tests:   []tests{inShared("database", "^TestPasswordCommandMayTakeTenSeconds$")}, says: "the password command was ended after",
	},

	// The endpoints of a node.
	{
		name: "sidecar: a sign of life every 150 s",
		file: "internal/program/sidecar/stream.go", from: "pulseInterval = 15 * time.Second ", to: "pulseInterval = 150 * time.Second ",
		promise: "http: a comment is sent every 15 s while there is no event",
		tests:   []tests{inShared("sidecar", "^TestIdleStreamShowsThatNodeLives$")}, says: "want 240: one every 15 s",
	},
	{
		name: "sidecar: a step-down is answered after 300 s",
		file: "internal/program/sidecar/stepdown.go", from: "stepDownTimeout = 30 * time.Second", to: "stepDownTimeout = 300 * time.Second",
		promise: "http: 202 after 30 s if the work still runs",
		tests:   []tests{inShared("sidecar", "^TestStepDownWaitsForWork$")}, says: "202 was answered after",
	},
	{
		name: "sidecar: a pause is answered after 3 s",
		file: "internal/program/sidecar/processors.go", from: "pauseTimeout  = 30 * time.Second", to: "pauseTimeout  = 3 * time.Second",
		promise: "http: 202 if the batch is still in flight after 30 s",
		tests:   []tests{inShared("sidecar", "^TestPauseIsAnsweredAfterHalfAMinute$")}, says: "202 was answered after",
	},
	{
		name: "sidecar: the files are read again after 10 s",
		file: "internal/program/sidecar/file.go", from: "checkInterval = time.Second", to: "checkInterval = 10 * time.Second",
		promise: "serve-http: the files are read again within a second after a change",
		tests:   []tests{inShared("sidecar", "^TestChangedTokenIsLoaded$")}, says: "the new token does not count",
	},
	{
		name: "sidecar: 10,240 streams",
		file: "internal/program/sidecar/stream.go", from: "maxStreams    = 1024 ", to: "maxStreams    = 10240 ",
		promise: "serve-http: a node has at most 1,024 streams",
		tests:   []tests{inShared("sidecar", "^TestStreamsOfAllAddressesAreLimited$")}, says: "stream 1025 was accepted",
	},
	{
		name: "dashboard: a login lasts for 120 h",
		file: "server/dashboard/session.go", from: "sessionLife = 12 * time.Hour", to: "sessionLife = 120 * time.Hour",
		promise: "secure: a login lasts for 12 h",
		tests:   []tests{inServer("dashboard", "^TestSignOnOpensASession$")}, says: "after 12 hours",
	},
	{
		name: "guesses: an address waits for ten minutes",
		file: "internal/httpguard/attempts.go", from: "AttemptsPeriod = time.Minute", to: "AttemptsPeriod = 10 * time.Minute",
		promise: "secure: after 10 wrong guesses in a minute, the address waits for the next minute",
		tests:   []tests{in("internal/httpguard", "^TestGuessesFromManyAddressesLockOutNoKnownOne$")}, says: "an address may not guess after a minute",
	},

	// The agent, the router, webhooks and retention.
	{
		name: "agent: a removed socket is back after 5 s",
		file: "agent/server/socket_linux.go", from: "time.NewTicker(500 * time.Millisecond)", to: "time.NewTicker(5000 * time.Millisecond)",
		promise: "share-connections: the agent creates a removed socket again within a second",
		tests:   []tests{in("agent", "^TestRemovedSocketIsMadeAgain$")}, says: "the socket was back after",
	},
	{
		name: "router: answers are cut 2.5 s after the term",
		file: "leaderhttp/cut.go", from: "cutDelay = 250 * time.Millisecond", to: "cutDelay = 2500 * time.Millisecond",
		promise: "reach-the-leader: answers are cut within a quarter of a second",
		tests:   []tests{in("leaderhttp", "^TestAnswerIsCutAQuarterOfASecondAfterItsTerm$")}, says: "after its term, want 250ms",
	},
	{
		name: "router: requests wait for 100 s",
		file: "leaderhttp/proxy.go", from: "cmp.Or(c.Wait, 10*time.Second)", to: "cmp.Or(c.Wait, 100*time.Second)",
		promise: "reach-the-leader: 503 if no leader accepted a connection for 10 s",
		tests:   []tests{in("leaderhttp", "^TestRequestsWaitForTheDocumentedTimes$")}, says: "want 503 after 10s",
	},
	{
		name: "router: 10,240 requests wait",
		file: "leaderhttp/proxy.go", from: "cmp.Or(c.MaxWaiting, 1024)", to: "cmp.Or(c.MaxWaiting, 10240)",
		promise: "reach-the-leader: 503 if 1,024 requests wait",
		tests:   []tests{in("leaderhttp", "^TestRequestsWaitForTheDocumentedTimes$")}, says: "want 503 without a wait",
	},
	{
		name: "webhook: requests can be replayed for 50 minutes",
		file: "outbox/webhook/signature.go", from: "ReplayWindow = 5 * time.Minute", to: "ReplayWindow = 50 * time.Minute",
		promise: "publish-events: timestamps within 5 minutes of the receiver's clock",
		tests:   []tests{in("outbox/webhook", "^TestReplayedRequestIsRejectedAfterFiveMinutes$")}, says: "the replay after 5 minutes and a second",
	},
	{
		name: "retention: histories are kept for 9 days",
		file: "retention/compactor.go", from: "cmp.Or(c.Keep, 90*24*time.Hour)", to: "cmp.Or(c.Keep, 9*24*time.Hour)",
		promise: "database: 90 days of both histories are kept",
		tests:   []tests{in("retention", "^TestRowsAreKeptFor90Days$")}, says: "rows are kept for 90 days",
	},

	{
		name: "retention: a search ends with its first batch",
		file: "retention/compactor.go", from: "from[r.what] = end\n\t\t\t\treturn false", to: "from[r.what] = end\n\t\t\t\treturn true",
		promise: "retention continues while anything was removed",
		tests:   []tests{in("retention", "^TestYoungRowsHoldNothingBack$")}, says: "an hour before the next search, no old row is left",
	},
	{
		name: "retention: runs are searched by their ids",
		file: "retention/queries.go", from: "ORDER BY ended_at\n        LIMIT $2\n        FOR UPDATE SKIP LOCKED\n    ) oldest\n    WHERE r.id = oldest.id", to: "ORDER BY id DESC\n        LIMIT $2\n        FOR UPDATE SKIP LOCKED\n    ) oldest\n    WHERE r.id = oldest.id",
		promise: "retention continues while anything was removed",
		tests:   []tests{in("retention", "^TestYoungRowsHoldNothingBack$")}, says: "an hour before the next search, no old row is left",
	},
	{
		name: "retention: a run of an old tick is old",
		file: "retention/queries.go", from: "WHERE ended_at < $1 AND ended_at >= $3 AND state", to: "WHERE scheduled_for < $1 AND ended_at >= $3 AND state",
		promise: "database: ended runs are kept for 90 days",
		tests:   []tests{in("retention", "^TestYoungRowsHoldNothingBack$")}, says: "backfilled run",
	},
	{
		name: "retention: a failed search is not recorded",
		file: "retention/compactor.go", from: "text = recordable(failure)", to: "text = \"\"",
		promise: "operate: old rows that cannot be removed are reported",
		tests:   []tests{in("retention", "^TestRevokedPrivilegeIsRecorded$")}, says: "two searches have failed",
	},
	{
		name: "doctor: retention that fails is well",
		file: "cmd/tenure/internal/cli/database/doctor_retention.go", from: "if s.Errors > 0 {\n\t\tparts", to: "if s.Errors > 9 {\n\t\tparts",
		promise: "operate: old rows that cannot be removed are reported",
		tests:   []tests{inCommand("internal/cli", "^TestRetentionThatCannotWorkIsReported$")}, says: "reports the retention",
	},
	{
		name: "metrics: retention is never late",
		file: "metrics/retention.go", from: "c.late.send(to, s.Late.Seconds(), s.Rows)", to: "c.late.send(to, 0, s.Rows)",
		promise: "operate: rows that are kept for too long are reported",
		tests:   []tests{inCommand("internal/cli", "^TestRetentionThatCannotWorkIsReported$")}, says: "reports the retention",
	},
	{
		name: "dashboard: it reads without viewers",
		file: "server/dashboard/audience.go", from: "time.Since(a.last) < attention", to: "!a.last.IsZero()",
		promise: "a dashboard without viewers reads nothing",
		tests:   []tests{inServer("dashboard", "^TestDashboardWithoutViewersReadsNothing$")}, says: "the watch rests",
	},
	{
		name: "dashboard: a request gets what the last viewer saw",
		file: "server/dashboard/audience.go", from: "if fresh == nil {", to: "if fresh != nil {",
		promise: "the first request after a time without viewers gets the present state",
		tests:   []tests{inServer("dashboard", "^TestDashboardWithoutViewersReadsNothing$")}, says: "want the role that api-2 acquired",
	},
	{
		name: "dashboard: alerts have the time of processors",
		file: "server/dashboard/work.go", from: "alerts, failure := limited(ctx, w.readAlerts)", to: "alerts, failure := func() ([]Alert, error) { ctx, done := context.WithDeadline(ctx, w.workAt.Add(lookTimeout)); defer done(); return w.readAlerts(ctx) }()",
		promise: "alerts are read while processors cannot be",
		tests:   []tests{inServer("dashboard", "^TestBlockedProcessorsDoNotHideAlerts$")}, says: "only processors cannot be read",
	},
	{
		name: "serve: alerts share the connections of everything",
		file: "server/internal/serve/serve.go", from: "Database: alertsPool,", to: "Database: pool,",
		promise: "nothing else uses up the connections of the alerts",
		tests:   []tests{inCommand("internal/cli", "^TestAlertsHaveTheirConnections$")}, says: "the alerts are evaluated on a connection of theirs",
	},
	{
		name: "metrics: the last outage is read again for an hour",
		file: "metrics/outages.go", from: "outageOverlap = 5 * time.Minute", to: "outageOverlap = 60 * time.Minute",
		promise: "no read of serve grows with what is kept",
		tests:   []tests{in("metrics", "^TestSettledOutageIsNotReadAgain$")}, says: "want only those after",
	},
	// Alerts.
	{
		name: "alerts: notifications are kept for an hour",
		file: "server/internal/alerts/outbox.go", from: "keepSettled = 7 * 24 * time.Hour", to: "keepSettled = 1 * time.Hour",
		promise: "database: a notification stays for a week after it is settled",
		tests:   []tests{inServer("internal/alerts", "^TestSettledNotificationsAreKeptForAWeek$")}, says: "they are kept for a week",
	},
	{
		name: "alerts: a notification is given up after 12 h",
		file: "server/internal/alerts/outbox.go", from: "giveUpAfter = 24 * time.Hour", to: "giveUpAfter = 12 * time.Hour",
		promise: "send-alerts: a notification that fails for a day is dropped",
		tests:   []tests{inServer("internal/alerts", "^TestNotificationIsDroppedAfterOneDay$")}, says: "one is given up after a day",
	},
	{
		name: "alerts: a silent node counts for 350 s",
		file: "server/internal/series/store.go", from: "staleAfter = 35 * time.Second", to: "staleAfter = 350 * time.Second",
		promise: "send-alerts: the series of a node end when it is silent for 35 s",
		tests:   []tests{inServer("internal/series", "^TestVacantRoleSumsToZero$")}, says: "tenure_node_reporting",
	},
	{
		name: "alerts: samples are kept for ten days",
		file: "server/internal/series/timeline.go", from: "Retention = 24 * time.Hour", to: "Retention = 240 * time.Hour",
		promise: "send-alerts: samples are kept for a day",
		tests:   []tests{inServer("internal/series", "^TestOldSamplesAreCoarser$")}, says: "the oldest sample is of",
	},
	{
		name: "alerts: a condition may take 100 s",
		file: "server/internal/alerts/evaluate.go", from: "ruleTimeout       = 10 * time.Second", to: "ruleTimeout       = 100 * time.Second",
		promise: "send-alerts: a condition may take 10 s",
		tests:   []tests{inServer("internal/alerts", "^TestConditionsHaveTenSeconds$")}, says: "one may take 10 s",
	},
	{
		name: "alerts: all conditions may take 150 s",
		file: "server/internal/alerts/evaluate.go", from: "evaluationTimeout = 15 * time.Second", to: "evaluationTimeout = 150 * time.Second",
		promise: "send-alerts: all conditions together may take 15 s",
		tests:   []tests{inServer("internal/alerts", "^TestConditionsHaveTenSeconds$")}, says: "all together 15 s",
	},
	{
		name: "alerts: causes are read for 150 minutes",
		file: "server/internal/alerts/relate.go", from: "recent = 15 * time.Minute", to: "recent = 150 * time.Minute",
		promise: "cli: the incident is the latest of the last 15 minutes",
		tests:   []tests{inServer("internal/alerts", "^TestCausesAreReadForAQuarterOfAnHour$")}, says: "the last 15 minutes are read",
	},
	{
		name: "alerts: a notification is retried after up to 100 min",
		file: "server/internal/alerts/queries.go", from: "least(600, 2.5 * 2 ^ least(attempts, 10))", to: "least(6000, 2.5 * 2 ^ least(attempts, 10))",
		promise: "send-alerts: a notification is retried after 5 s to 10 min",
		tests:   []tests{inServer("internal/alerts", "^TestNotificationIsRetriedAfterFiveSecondsToTenMinutes$")}, says: "want about",
	},
	{
		name: "alerts: a notification is retried after 50 s",
		file: "server/internal/alerts/queries.go", from: "least(600, 2.5 * 2 ^ least(attempts, 10))", to: "least(600, 25 * 2 ^ least(attempts, 10))",
		promise: "send-alerts: a notification is retried after 5 s to 10 min",
		tests:   []tests{inServer("internal/alerts", "^TestNotificationIsRetriedAfterFiveSecondsToTenMinutes$")}, says: "want about",
	},
	{
		name: "metrics: each sample is kept for 100 minutes",
		file: "metrics/keeping.go", from: "keepEach = 10 * time.Minute", to: "keepEach = 100 * time.Minute",
		promise: "metrics: each sample is kept for 10 minutes",
		tests:   []tests{in("metrics", "^TestSamplesAreKeptForTheDocumentedTimes$")}, says: "the samples of an hour are kept",
	},
	{
		name: "webhook: a request has 100 s",
		file: "outbox/webhook/config.go", from: "cmp.Or(c.Timeout, 10*time.Second)", to: "cmp.Or(c.Timeout, 100*time.Second)",
		promise: "publish-events: an outage if there is no response within 10 s",
		tests:   []tests{in("outbox/webhook", "^TestRequestHasTenSeconds$")}, says: "the request ended after",
	},
	{
		name: "webhook: a receiver delays the retry by 100 minutes",
		file: "outbox/webhook/config.go", from: "cmp.Or(c.MaxRetryAfter, 10*time.Minute)", to: "cmp.Or(c.MaxRetryAfter, 100*time.Minute)",
		promise: "publish-events: Retry-After counts up to 10 min",
		tests:   []tests{in("outbox/webhook", "^TestRetryAfterDelaysTheRetry$")}, says: "want a pause of",
	},
}
