package promises

// postgresConstants are the numbers of the guarantees and of the reference of the
// database that belong to elections on PostgreSQL.
var postgresConstants = []Constant{
	{
		In: on(
			Guarantees, "vacuum horizon for at most about 30 s",
			Guarantees, "`WatchPeriod` (30 s)",
			Database, "`WatchPeriod` (at most 30 s",
			operate, "`postgres.Config.WatchPeriod` to less than 30 s",
		),
		File: "postgres/config.go", From: "DefaultWatchPeriod     = 30 * time.Second",
		Tests: by("postgres", "^TestNewRejectsInvalidConfig$"),
	},
	{
		In:   on(Guarantees, "longer of lease + margin and 15 s after"),
		File: "postgres/outside.go", From: "const strangerGrace = 15 * time.Second",
		Tests: by("postgres", "^TestSessionWithoutRowIsSparedForLongestLease$"),
	},
	{
		In:   on(Guarantees, "within a tenth of the lease"),
		File: "serve.go", From: "min(trustTick, n.cfg.Lease/10)", To: "min(trustTick, n.cfg.Lease)",
		Tests: by(".", "^TestWallClockJumpEndsTermWithinOneTick$"),
		Says:  "invariant 1: with a lease of 1s",
	},
	{
		In:   on(Guarantees, "at most a second. <!--"),
		File: "serve.go", From: "const trustTick = time.Second",
		Tests: by(".", "^TestWallClockJumpEndsTermWithinOneTick$"),
		Says:  "invariant 1: with a lease of 1m0s",
	},
	{
		In:   on(Guarantees, "holds roles at the eighth at the latest"),
		File: "postgres/heartbeat.go", From: "const auditBeats = 8",
		Tests: by("postgres", "^TestHeartbeatDetectsInterference$"),
	},
	{
		In:   on(Guarantees, "directly to PostgreSQL 14 or later"),
		File: "postgres/server.go", From: "const oldestServer = 140000",
		Tests: by("postgres", "^TestRefuseRejectsUnsafeServers$"),
	},
	{
		In:   on(Database, "a query of the registry every 9 to 12 times `CheckInterval`"),
		File: "cluster/view.go", From: "const rereadIntervals = 12",
		Tests: by("cluster", "^TestViewReadsAgainIfAReportIsLost$"),
		Says:  "the registry was read 0 times in 1m0s",
	},
	{
		In: on(
			Database, "for each 1,000 roles that it campaigns for",
			Database, "adds 0.2 for each 1,000 roles",
		),
		File: "acquire.go", From: "const maxBatch = 1000",
		Tests: by(".", "^TestAttemptsHaveAtMostThousandRoles$"), Says: "roles, want 1000",
	},
	{
		In:   on(Database, "every 60 times that"),
		File: "postgres/led_elsewhere.go", From: "provenIntervals = 60",
		Tests: by("postgres", "^TestLedRolesAreTriedOnceInAWhile$"),
	},
	{
		In:   on(Database, "roles of more than 1,000 other nodes"),
		File: "postgres/led_elsewhere.go", From: "maxLeaders = 1000",
		Tests: by("postgres", "^TestAttemptsForRolesOfManyLeadersSendNothing$"),
	},
	{
		In:   on(Database, "a member makes at most 0.4 statements per second"),
		File: "cluster/member.go", From: "cmp.Or(nodeConfig.Lease, defaultLease)/3)", Value: "3", To: "cmp.Or(nodeConfig.Lease, defaultLease)/30)",
		Tests: by("cluster", "^TestRestingNodesReadTheRegistrySeldom$"),
		Says:  "statements were sent; want at most",
	},
	{
		In:   on(Database, "waits at most 3 s: `ErrInstallationInUse`"),
		File: "postgres/internal/install/installation.go", From: "installationWait  = 3 * time.Second",
		Tests: by("postgres", "^TestMigrationGivesUpInstallationInUse$"), Says: "want ErrInstallationInUse after 3s",
	},
	{
		In: on(
			Database, "Elections use at most half of the server's lock table",
			Database, "With 100 connections, the default of 64 is enough for about 3,200 roles",
		),
		File: "postgres/internal/server/capacity.go", From: "return c.Size() / 2", To: "return c.Size() / 20",
		Tests: by("postgres", "^TestHalfOfTheLockTableIsForElections$"), Says: "elections may use 320 locks",
	},
	{
		In:   on(Database, "Dead nodes stay for a day", formCluster, "registry as `dead` for a day", sendAlerts, "none replaced it, for a day or until"),
		File: "postgres/join.go", From: "interval '1 day'", Value: "1 day",
		Tests: by("postgres", "^TestDeadNodesStayForADay$"), Says: "since dead nodes stay for a day",
	},
	{
		In:   on(Database, "or not answered for 200 ms"),
		File: "internal/pgdial/hosts.go", From: "const stagger = 200 * time.Millisecond",
		Tests: by("internal/pgdial", "^TestUnansweredAttemptsEndAtTheDocumentedTimes$"),
	},
	{
		In:   on(Database, "An attempt ends after 3 s with several hosts"),
		File: "internal/openlimit/openlimit.go", From: "ConnectionOfSeveral = Rule{Least: 3 * time.Second", Value: "3 * time.Second",
		Tests: by("internal/pgdial", "^TestUnansweredAttemptsEndAtTheDocumentedTimes$"),
	},
	{
		In:   on(Database, "addresses, 5 s with one"),
		File: "internal/openlimit/openlimit.go", From: "Connection          = Rule{Least: 5 * time.Second", Value: "5 * time.Second",
		Tests: by("internal/pgdial", "^TestUnansweredAttemptsEndAtTheDocumentedTimes$"),
	},
	{
		In:   on(Database, "reached but slow gets up to 15 and"),
		File: "internal/openlimit/openlimit.go", From: "Most: 15 * time.Second", Value: "15 * time.Second",
		Tests: by("internal/pgdial", "^TestAttemptsGrowWhileServerHangs$"),
	},
	{
		In:   on(Database, "and 60 s; opening"),
		File: "internal/openlimit/openlimit.go", From: "Most: time.Minute", Value: "time.Minute",
		Tests: by("internal/pgdial", "^TestAttemptsGrowWhileServerHangs$"),
	},
	{
		In:   on(Database, "a session, 10 s to"),
		File: "internal/openlimit/openlimit.go", From: "Least: 10 * time.Second", Value: "10 * time.Second",
		Tests: by(".", "^TestOpenTimeoutGrowsAfterSlowAttempts$"),
	},
	{
		In:   on(Database, "to 2 min."),
		File: "internal/openlimit/openlimit.go", From: "Most: 2 * time.Minute", Value: "2 * time.Minute",
		Tests: by(".", "^TestOpenTimeoutGrowsAfterSlowAttempts$"),
	},
	{
		In:   on(Database, "It waits 300 ms for a table"),
		File: "postgres/internal/install/migrate_aside.go", From: "firstTableWait = 300 * time.Millisecond",
		Tests: by("postgres", "^TestMigrationWaitsForTheDocumentedTimes$"),
	},
	{
		In:   on(Database, "retries for 700 ms"),
		File: "postgres/internal/install/migrate_aside.go", From: "laterTableWait = 700 * time.Millisecond",
		Tests: by("postgres", "^TestMigrationWaitsForTheDocumentedTimes$"),
	},
	{
		In:   on(Database, "pauses a second"),
		File: "postgres/internal/install/migrate_aside.go", From: "const migrationPause = time.Second",
		Tests: by("postgres", "^TestMigrationWaitsForTheDocumentedTimes$"),
	},
	{
		In:   on(operate, "statements time out after half of it"),
		File: "postgres/internal/link/settings.go", From: "half := timing.RefreshInterval / 2",
		Tests: by("postgres", "^TestSettingsAreNotInherited$"),
	},
}
