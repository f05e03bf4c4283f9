package main

// pageMutants break what people see on the dashboard.
var pageMutants = []mutant{
	{
		name: "dashboard: a silence is no time without a leader",
		file: "internal/incident/without.go", from: "max(next.PrecedingVacancy, next.PrecedingSilence)", to: "next.PrecedingVacancy",
		promise: "the time without a leader lasts from when the old leader could last act to when the next one could",
		tests:   []tests{inServer("dashboard", "^TestTimeWithoutALeaderIncludesTheSilence$")}, says: "the role was without a leader for",
	},
	{
		name: "dashboard: a move counts as a failover",
		file: "internal/incident/without.go", from: "return t.Reason != \"\" && !unclean(t.Reason) &&", to: "return false &&",
		promise: "planned moves are not failovers, in counts and medians",
		tests:   []tests{inServer("dashboard", "^TestTimeWithoutALeaderIncludesTheSilence$")}, says: "want one failover and one move",
	},
	{
		name: "dashboard: a share of the failovers is below the nearest rank",
		file: "server/dashboard/failovers.go", from: "(percent*len(sorted)+99)/100", to: "percent*len(sorted)/100",
		promise: "percentiles are cases at the nearest rank",
		tests:   []tests{inServer("dashboard", "^TestSharesOfFailoversAreCases$")}, says: "failovers of 1 to",
	},
	{
		name: "dashboard: few failovers have a 99 % share",
		file: "server/dashboard/failovers.go", from: "const leastCases = 20", to: "const leastCases = 2",
		promise: "under 20 cases there is no 99 % share",
		tests:   []tests{inServer("dashboard", "^TestSharesOfFailoversAreCases$")}, says: "failovers of 1 to",
	},
	{
		name: "dashboard: nodes that ran together replace one another",
		file: "internal/program/roster/roster.go", from: "!h.StartedAt.Before(m.LastHeartbeat)", to: "true",
		promise: "a node that came back leaves no dead node behind, and no other dead node is hidden",
		tests:   []tests{inServer("dashboard", "^TestNodesOfOneNameReplaceOnlyEarlierOnes$")}, says: "are replaced, want",
	},
	{
		name: "dashboard: a silenced alert is in the banner",
		file: "server/dashboard/config.go", from: "return a.SilencedBy != \"\"", to: "return false",
		promise: "the banner describes what stopped work before what is silenced",
		tests:   []tests{inServer("dashboard", "^TestSilencedAlertIsNotInTheBanner$")}, says: "the alerts are read",
	},
	{
		name: "dashboard: a planned end hides stopped work",
		file: "server/dashboard/health.go", from: "r.state == vacant && !incident.Planned(r.term)", to: "r.state == vacant && (true || incident.Planned(r.term))",
		promise: "the banner describes what stopped work before what ended as planned",
		tests:   []tests{inServer("dashboard", "^TestStoppedWorkComesBeforePlannedEnds$")}, says: "after an end for the reason",
	},
	{
		name: "dashboard: a role that was given up for a cause ended as planned",
		file: "internal/incident/without.go", from: " && (t.Reason != history.EndResigned || t.Cause == \"\")", to: "",
		promise: "the banner describes what stopped work before what ended as planned",
		tests:   []tests{inServer("dashboard", "^TestStoppedWorkComesBeforePlannedEnds$")}, says: "after an end for the reason",
	},
	{
		name: "dashboard: a node is forgotten without a record",
		file: "server/dashboard/actions.go", from: "	d.recordAction(ctx, by, \"node\", name, \"forget\", node.String())", to: "	_ = name",
		promise: "each action of an operator is on record",
		tests:   []tests{inServer("dashboard", "^TestOperatorsRemedyWhatTheBannerShows$")}, says: "the audit",
	},
	{
		name: "dashboard: what a vacant role waits for is not read",
		file: "server/dashboard/watch.go", from: "	w.readBlocked(limited)\n", to: "	w.snapshot.setBlocked(nil)\n",
		promise: "the blocker of a vacancy is named",
		tests:   []tests{inServer("internal/browser", "^TestBlockerOfAVacancyIsNamed$")}, says: "the banner names the blocker",
	},
	{
		name: "top: failing work is not read",
		file: "cmd/tenure/internal/cli/top/read.go", from: "r.faults, r.at = r.work.Faults(ctx), time.Now()", to: "r.at = time.Now()",
		promise: "cli: top shows failing work above the roles",
		tests:   []tests{inCommand("internal/cli", "^TestTopShowsFailingWork$")}, says: "processor stopped after errors",
	},
	{
		name: "node forget: it is not recorded",
		file: "cmd/tenure/internal/cli/cluster/nodes_forget.go", from: "	recordForgotten(cmd, database, m.ID, m.Name)\n", to: "	_ = recordForgotten\n",
		promise: "each action of an operator is on record",
		tests:   []tests{inCommand("internal/cli", "^TestNodesWithOneNameAreListedByID$")}, says: "want the removal of the node",
	},
	{
		name: "dashboard: the state of retention is not read",
		file: "server/dashboard/work.go", from: "	work.Retention = w.readRetention(ctx)\n", to: "	_ = w.readRetention\n",
		promise: "the page shows what old rows cannot be removed",
		tests:   []tests{inServer("internal/browser", "^TestStatesOfRetentionAreDrawn$")}, says: "the state of ",
	},
	{
		name: "dashboard: moves that have not ended count as done",
		file: "server/dashboard/actions.go", from: "result.late, err = true, nil", to: "err = nil",
		promise: "the answer to an action states what has happened",
		tests:   []tests{inServer("dashboard", "^TestOperatorRebalancesSharedRoles$")}, says: "while work continues, the result is",
	},
	{
		name: "dashboard: a rebalance has no requester",
		file: "server/dashboard/actions.go", from: "d.config.Backend, by, nil)", to: "d.config.Backend, \"\", nil)",
		promise: "each action of an operator is on record",
		tests:   []tests{inServer("dashboard", "^TestOperatorRebalancesSharedRoles$")}, says: "the moves were requested by",
	},
	{
		name: "dashboard: an overdue schedule is on time",
		file: "server/dashboard/work.go", from: "Overdue: s.Overdue.Seconds()", to: "Overdue: 0",
		promise: "the page shows the states of schedules",
		tests:   []tests{inServer("internal/browser", "^TestStatesOfSchedulesAreDrawn$")}, says: "the state of ",
	},
	{
		name: "top: alerts hide failing work",
		file: "cmd/tenure/internal/cli/roles/faults.go", from: "			all = append(all, one)", to: "			all = append([]Fault{one}, all...)",
		promise: "cli: top shows stopped work before alerts",
		tests:   []tests{inCommand("internal/cli/roles", "^TestSummaryNamesWorkThatIsNotWell$")}, says: "top lists alerts before work",
	},
	{
		name: "dashboard: the banner counts from the first vacancy of all",
		file: "server/dashboard/health.go", from: "Since: &r.Began, Incident: r.ID}, true", to: "Since: p.vacantSince(), Incident: r.ID}, true",
		promise: "the banner says how long the role that it names has had no leader",
		tests:   []tests{inServer("dashboard", "^TestBannerCountsFromItsIncident$")}, says: "want a crash at",
	},
	{
		name: "dashboard: the cause of an end is as short as a name",
		file: "server/dashboard/found.go", from: "return quotedUpTo(cause, mostErrorRunes)", to: "return quoted(cause)",
		promise: "the page shows the exit code of a crash loop",
		tests:   []tests{inServer("dashboard", "^TestCauseOfAnEndIsShownInFull$")}, says: "want the cause in one",
	},
	{
		name: "record: a hundred failed runs are all",
		file: "internal/program/record/schedule.go", from: "if failedInRow >= mostFailedInRow {", to: "if failedInRow > mostFailedInRow {",
		promise: "the number of failed runs in a row is not understated",
		tests:   []tests{inServer("dashboard", "^TestHealthStatesFailingWork$")}, says: "failed at least 100 times in a row",
	},
	{
		name: "page: names are cut at their end",
		file: "server/dashboard/assets/dom.js", from: "{13,}$/.test(text)", to: "{999,}$/.test(text)",
		promise: "the page distinguishes pods",
		tests:   []tests{inServer("internal/browser", "^TestNamesThatAreCutKeepTheirEnd$")}, says: "pixels: the end of",
	},
	{
		name: "page: the link to the content opens a page that does not exist",
		file: "server/dashboard/assets/app.js", from: "  event.preventDefault();\n  main.focus();\n", to: "  event.stopPropagation();\n  main.focus();\n",
		promise: "the page is usable by the keyboard alone",
		tests:   []tests{inServer("internal/browser", "^TestSkipLinkReachesTheContent$")}, says: "want that of the nodes",
	},
	{
		name: "alerts: the record of a silence has no seconds",
		file: "server/internal/alerts/queries_admin.go", from: "'silence ' || id || ' until ' || to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')", to: "'silence ' || id || ' until ' || to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')",
		promise: "all times are in RFC 3339",
		tests:   []tests{inServer("internal/alerts", "^TestSilencedAlertIsSentWhenSilenceEnds$")}, says: "the changes on record are",
	},
	{
		name: "page: typing does not find a node",
		file: "server/dashboard/assets/actions.js", from: "`${optionName(node.name)}: ", to: "`${quoted(node.name)}: ",
		promise: "the page is usable by the keyboard alone",
		tests:   []tests{inServer("internal/browser", "^TestNodeIsChosenByTypingItsName$")}, says: "is chosen after",
	},
}
