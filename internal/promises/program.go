package promises

// commandConstants are the numbers of commands under `tenure run` and `tenure cron run`.
var commandConstants = []Constant{
	{
		In:   on(runCommand, "within the term, after 100 ms"),
		File: "cmd/tenure/internal/cli/lead/restart.go", From: "ShortestPause = 100 * time.Millisecond",
		Tests: byCommand("internal/cli/lead", "^TestRestartPoliciesDecideByExitCode$"), Says: "pauses [1s",
	},
	{
		In:   on(runCommand, "doubling to 30 s"),
		File: "cmd/tenure/internal/cli/lead/restart.go", From: "longestPause  = 30 * time.Second",
		Tests: byCommand("internal/cli/lead", "^TestRestartPoliciesDecideByExitCode$"), Says: "51.2s]",
	},
	{
		In:   on(runCommand, "A run of a minute resets"),
		File: "cmd/tenure/internal/cli/lead/restart.go", From: "healthyLife   = time.Minute",
		Tests: byCommand("internal/cli/lead", "^TestRestartPoliciesDecideByExitCode$"), Says: "after a long life",
	},
	{
		In:   on(runCommand, "times (5) in a row"),
		File: "cmd/tenure/internal/cli/lead/restart.go", From: "DefaultRestarts = 5",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "50 restarts",
	},
	{
		In:   on(runCommand, "failed three times in a row"),
		File: "cmd/tenure/internal/cli/lead/health.go", From: "UnhealthyAfter     = 3",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "30 failures",
	},
	{
		In:   on(runCommand, "every `--health-every` (10 s)"),
		File: "cmd/tenure/internal/cli/lead/health.go", From: "defaultHealthEvery = 10 * time.Second",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "a check every 1m40s",
	},
	{
		In:   on(runCommand, "`--health-every` or 10 s"),
		File: "cmd/tenure/internal/cli/lead/health.go", From: "longestHealthCheck = 10 * time.Second",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "a check may take",
	},
	{
		In:   on(runCommand, "SIGKILL 100 ms before"),
		File: "cmd/tenure/internal/cli/lead/command.go", From: "longestLead  = 100 * time.Millisecond",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "the kill comes",
	},
	{
		In:   on(runCommand, "a twentieth of a lease under 2 s"),
		File: "cmd/tenure/internal/cli/lead/command.go", From: "config.Lease/20", To: "config.Lease/2",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "the kill comes",
	},
	{
		In: on(
			runCommand, "`--settle` (200 ms)",
			shareConnections, "`--settle` (200 ms)",
		),
		File: "cmd/tenure/internal/cli/lead/flags.go", From: "const commandSettle = 200 * time.Millisecond",
		Tests: byCommand("internal/cli/lead", "^TestNodesWithCommandsSettle$"), Says: "the settle time is 2s",
	},
	{
		In:   on(runCommand, "lease − margin − 2 × refresh"),
		File: "cmd/tenure/internal/cli/lead/command.go", From: "config.Lease-margin-2*p.Refresh", To: "config.Lease-margin-20*p.Refresh",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "the longest grace",
	},
	{
		In:   on(scheduleJobs, "after `--grace` (1 s) SIGKILL"),
		File: "cmd/tenure/internal/cli/lead/command.go", From: "defaultGrace = time.Second",
		Tests: byCommand("internal/cli/lead", "^TestCommandsHaveDocumentedDefaults$"), Says: "the grace is",
	},
	{
		In:   on(operate, "appears for an hour after an outage"),
		File: "cmd/tenure/internal/cli/roles/summary.go", From: "const outageAge = time.Hour",
		Tests: byCommand("internal/cli", "^TestOutageIsNamed$"), Says: "status two hours later",
	},
	{
		In:   on(secure, "exit code 0 within 10 s"),
		File: "internal/program/database/password.go", From: "passwordTimeout = 10 * time.Second",
		Tests: byShared("database", "^TestPasswordCommandIsEndedAfterTenSeconds$"), Says: "it took",
	},
}

// serviceConstants are the numbers of the HTTP interfaces and of the page.
var serviceConstants = []Constant{
	{
		In:   on(secure, "A login lasts for 12 h", secure, "| login sessions | 12 h"),
		File: "server/dashboard/session.go", From: "sessionLife = 12 * time.Hour",
		Tests: byServer("dashboard", "^TestSignOnOpensASession$"), Says: "after 12 hours",
	},
	{
		In:   on(secure, "It ends within a minute if"),
		File: "server/dashboard/session.go", From: "userRecheck = 30 * time.Second", To: "userRecheck = 90 * time.Second",
		Tests: byServer("dashboard", "^TestEndOfAccessReachesOpenStreams$"), Says: "a minute after their access ended",
	},
	{
		In:   on(secure, "| tokens, passwords | at least 16 bytes", serveHTTP, "one line of at least 16 letters"),
		File: "internal/program/sidecar/token.go", From: "minToken = 16",
		Tests: byShared("sidecar", "^TestTokenHasAtLeast16Characters$"), Says: "a token of 16 characters",
	},
	{
		In:   on(secure, "after 10 wrong ones in"),
		File: "internal/httpguard/attempts.go", From: "MaxAttempts    = 10",
		Tests: by("internal/httpguard", "^TestGuessesFromManyAddressesLockOutNoKnownOne$"), Says: "may guess without end",
	},
	{
		In: on(
			secure, "in a minute, the address waits",
			secure, "too many wrong tokens: wait a minute",
			serveHTTP, "| wait a minute |",
		),
		File: "internal/httpguard/attempts.go", From: "AttemptsPeriod = time.Minute",
		Tests: by("internal/httpguard", "^TestGuessesFromManyAddressesLockOutNoKnownOne$"), Says: "a guess from 203.0.0.0",
	},
	{
		In:   on(secure, "after 200 from all"),
		File: "internal/httpguard/attempts.go", From: "MaxAllAttempts = 200",
		Tests: by("internal/httpguard", "^TestGuessesFromManyAddressesLockOutNoKnownOne$"), Says: "another address may guess",
	},
	{
		In:   on(serveHTTP, "read again within a second after"),
		File: "internal/program/sidecar/file.go", From: "const checkInterval = time.Second",
		Tests: byShared("sidecar", "^TestChangedTokenIsLoaded$"), Says: "the new token does not count",
	},
	{
		In:   on(serveHTTP, "the longest piece of work plus 200 ms"),
		File: "internal/program/sidecar/guard.go", From: "guardMargin = 200 * time.Millisecond",
		Tests: byShared("sidecar", "^TestPieceThatOutlastsSettleIsRefused$"), Says: "the status is",
	},
	{
		In:   on(serveHTTP, "or 202 after 30 s"),
		File: "internal/program/sidecar/stepdown.go", From: "const stepDownTimeout = 30 * time.Second",
		Tests: byShared("sidecar", "^TestStepDownWaitsForWork$"),
	},
	{
		In:   on(serveHTTP, "sends a comment every 15 s"),
		File: "internal/program/sidecar/stream.go", From: "pulseInterval = 15 * time.Second",
		Tests: byShared("sidecar", "^TestIdleStreamShowsThatNodeLives$"),
	},
	{
		In:   on(serveHTTP, "at most 2,048 connections"),
		File: "internal/program/sidecar/listener.go", From: "const maxConnections = maxStreams + 1024", Value: "maxStreams + 1024",
		Tests: byShared("sidecar", "^TestConnectionsAndStreamsAreLimited$"), Says: "connections",
	},
	{
		In:   on(serveHTTP, "or half of the process's descriptors"),
		File: "internal/program/sidecar/listener.go", From: "min(maxConnections, descriptors/2)", Value: "descriptors/2",
		Tests: byShared("sidecar", "^TestConnectionsAndStreamsAreLimited$"), Says: "with 1000 descriptors",
	},
	{
		In:   on(serveHTTP, "at most 1,024 streams"),
		File: "internal/program/sidecar/stream.go", From: "maxStreams    = 1024",
		Tests: byShared("sidecar", "^TestConnectionsAndStreamsAreLimited$"), Says: "streams",
	},
	{
		In:   on(serveHTTP, "256 from one address"),
		File: "internal/program/sidecar/stream.go", From: "eachStreams   = 256",
		Tests: byShared("sidecar", "^TestConnectionsAndStreamsAreLimited$"), Says: "one address has 300 streams",
	},
	{
		In:   on(shareConnections, "creates it again within a second"),
		File: "agent/server/socket_linux.go", From: "time.NewTicker(500 * time.Millisecond)", Value: "500 * time.Millisecond",
		Tests: by("agent", "^TestRemovedSocketIsMadeAgain$"),
	},
	{
		In:   on(useDashboard, "At most 512 viewers"),
		File: "server/dashboard/stream.go", From: "maxStreams      = 512",
		Tests: byServer("dashboard", "^TestViewersAreLimited$"), Says: "viewers",
	},
	{
		In:   on(useDashboard, "connected, 128 from one address"),
		File: "server/dashboard/stream.go", From: "eachStreams     = 128",
		Tests: byServer("dashboard", "^TestOneStreamTooManyIsRefused$"), Says: "one too many",
	},
	{
		In:   on(useDashboard, "no heartbeat for half of its lease"),
		File: "server/dashboard/nodes.go", From: "quiet > m.Lease/2:", Value: "m.Lease/2",
		Tests: byServer("dashboard", "^TestSilentNodeIsShown$"), Says: "silent for 6s",
	},
	{
		In:   on(useDashboard, "after three failures in a row"),
		File: "server/dashboard/trouble.go", From: "const seriousFailures = 3",
		Tests: byServer("dashboard", "^TestHealthStatesFailingWork$"), Says: "a failed receiver",
	},
	{
		In:   on(useDashboard, "after a day their totals"),
		File: "server/dashboard/samples.go", From: "sampledFor      = 24 * time.Hour",
		Tests: byServer("dashboard", "^TestGraphsShowTotalsAfterADay$"), Says: "samples for 240h",
	},
	{
		In:   on(useDashboard, "waits up to 15 s, and reports"),
		File: "server/dashboard/outcome.go", From: "outcomeTimeout = 15 * time.Second",
		Tests: byServer("dashboard", "^TestOutcomeIsAwaitedFor15Seconds$"), Says: "after 2m30s",
	},
	{
		In:   on(useDashboard, "links, at most 20."),
		File: "internal/program/link/link.go", From: "const Most = 20",
		Tests: byServer("dashboard", "^TestMessagesHaveLinks$"), Says: "21 links",
	},
}
