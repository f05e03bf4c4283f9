package promises

// alertConstants are the numbers of alerts and of what is kept for them.
var alertConstants = []Constant{
	{
		In:   on(Database, "keeps 90 days of both histories"),
		File: "retention/compactor.go", From: "cmp.Or(c.Keep, 90*24*time.Hour)", Value: "90*24*time.Hour",
		Tests: by("retention", "^TestRowsAreKeptFor90Days$"),
	},
	{
		In:   on(Database, "for a week after it is settled"),
		File: "server/internal/alerts/outbox.go", From: "keepSettled = 7 * 24 * time.Hour",
		Tests: byServer("internal/alerts", "^TestSettledNotificationsAreKeptForAWeek$"),
	},
	{
		In:   on(Database, "for 90 days after the end"),
		File: "server/internal/alerts/outbox.go", From: "keepHistory = 90 * 24 * time.Hour",
		Tests: byServer("internal/alerts", "^TestOldRecordsArePruned$"), Says: "left are 3 alerts and 2 silences",
	},
	{
		In:   on(sendAlerts, "A notification that fails for a day is dropped"),
		File: "server/internal/alerts/outbox.go", From: "giveUpAfter = 24 * time.Hour",
		Tests: byServer("internal/alerts", "^TestNotificationIsDroppedAfterOneDay$"), Says: "that it is given up",
	},
	{
		In:   on(sendAlerts, "may yield 10,000 series"),
		File: "server/internal/alerts/evaluate.go", From: "maxAlerts = 10_000",
		Tests: byServer("internal/alerts", "^TestConditionsAreLimited$"), Says: "10001 series",
	},
	{
		In:   on(sendAlerts, "read 1,000,000 samples"),
		File: "server/internal/alerts/evaluate.go", From: "maxQuerySamples = 1_000_000",
		Tests: byServer("internal/alerts", "^TestConditionsAreLimited$"), Says: "more than 1000000 samples",
	},
	{
		In:   on(sendAlerts, "use 384 MB"),
		File: "server/internal/alerts/memory.go", From: "maxMemory   = 384 << 20",
		Tests: byServer("internal/alerts", "^TestMemoryOfAConditionIsLimited$"), Says: "384 MB",
	},
	{
		In:   on(sendAlerts, "and take 10 s, and"),
		File: "server/internal/alerts/evaluate.go", From: "ruleTimeout       = 10 * time.Second",
		Tests: byServer("internal/alerts", "^TestSlowConditionsAreEnded$"), Says: "1 slow conditions take 15s",
	},
	{
		In:   on(sendAlerts, "  15 s. A condition"),
		File: "server/internal/alerts/evaluate.go", From: "evaluationTimeout = 15 * time.Second",
		Tests: byServer("internal/alerts", "^TestSlowConditionsAreEnded$"), Says: "2 slow conditions take",
	},
	{
		In:   on(sendAlerts, "The leader keeps 50,000 series"),
		File: "server/internal/series/store.go", From: "const defaultMaxSeries = 50_000",
		Tests: byServer("internal/series", "^TestStoreKeepsFiftyThousandSeriesByDefault$"), Says: "50010 series are kept",
	},
	{
		In:   on(sendAlerts, "each sample for an hour"),
		File: "server/internal/series/timeline.go", From: "{0, time.Hour}", Value: "time.Hour",
		Tests: byServer("internal/series", "^TestOldSamplesAreCoarser$"), Says: "there are",
	},
	{
		In:   on(sendAlerts, "one per minute for six hours"),
		File: "server/internal/series/timeline.go", From: "{time.Minute, 6 * time.Hour}", Value: "6 * time.Hour",
		Tests: byServer("internal/series", "^TestOldSamplesAreCoarser$"),
	},
	{
		In:   on(sendAlerts, "one per five minutes for"),
		File: "server/internal/series/timeline.go", From: "{5 * time.Minute, Retention}", Value: "5 * time.Minute",
		Tests: byServer("internal/series", "^TestOldSamplesAreCoarser$"), Says: "there is a gap",
	},
	{
		In: on(
			sendAlerts, "for a day.\n  A new leader",
			sendAlerts, "a range from a minute to a day",
			sendAlerts, "and are kept for a day",
		),
		File: "server/internal/series/timeline.go", From: "const Retention = 24 * time.Hour",
		Tests: byServer("internal/series", "^TestOldSamplesAreCoarser$"), Says: "the oldest sample is of",
	},
	{
		In:   on(sendAlerts, "evaluates every 10 s"),
		File: "server/internal/alerts/engine.go", From: "defaultInterval = 10 * time.Second",
		Tests: byServer("internal/alerts", "^TestRoundsAreTenSecondsApartByDefault$"), Says: "the interval is 1m40s",
	},
	{
		In:   on(sendAlerts, "samples come every 10 s"),
		File: "metrics/reporter.go", From: "defaultReportInterval = 10 * time.Second",
		Tests: by("metrics", "^TestReporterGathersEveryTenSeconds$"),
	},
	{
		In:   on(sendAlerts, "a line of at most 80 characters"),
		File: "server/internal/notifiers/batch.go", From: "maxTitle       = 80",
		Tests: byServer("internal/notifiers", "^TestTitleFitsLockScreen$"), Says: "the title is",
	},
	{
		In:   on(sendAlerts, "or silent for 35 s"),
		File: "server/internal/series/store.go", From: "const staleAfter = 35 * time.Second",
		Tests: byServer("internal/series", "^TestVacantRoleSumsToZero$"),
	},
	{
		In:   on(sendAlerts, "up to 100 alerts as JSON"),
		File: "server/internal/notifiers/webhook.go", From: "func (webhook) batch() int { return 100 }", Value: "100",
		Tests: byServer("internal/notifiers", "^TestWebhookSendsUpToHundredAlerts$"), Says: "1000 alerts",
	},
	{
		In:   on(sendAlerts, "again every minute while an alert fires"),
		File: "server/internal/notifiers/alertmanager.go", From: "alertmanagerRefresh = time.Minute",
		Tests: byServer("internal/notifiers", "^TestAlertmanagerAlertOutlivesInterval$"),
	},
	{
		In:   on(sendAlerts, "`per_minute` messages (60)"),
		File: "server/internal/notifiers/config.go", From: "defaultPerMinute = 60",
		Tests: byServer("internal/notifiers", "^TestNotifierSendsSixtyMessagesAMinuteByDefault$"), Says: "600 messages",
	},
	{
		In:   on(sendAlerts, "ten of them in a burst"),
		File: "server/internal/alerts/limiter.go", From: "const burst = 10",
		Tests: byServer("internal/alerts", "^TestLimiterAllowsOneBurst$"), Says: "the message 10 waits",
	},
	{
		In:   on(sendAlerts, "It is retried after 5 s to"),
		File: "server/internal/alerts/queries.go", From: "2.5 * 2 ^ least(attempts, 10)", To: "25 * 2 ^ least(attempts, 10)",
		Tests: byServer("internal/alerts", "^TestNotificationIsRetriedAfterFiveSecondsToTenMinutes$"), Says: "want about",
	},
	{
		In:   on(sendAlerts, "s to 10 min. `tenure"),
		File: "server/internal/alerts/queries.go", From: "least(600, 2.5", Value: "600",
		Tests: byServer("internal/alerts", "^TestNotificationIsRetriedAfterFiveSecondsToTenMinutes$"), Says: "want about",
	},
}
