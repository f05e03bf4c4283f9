package main

const (
	critical = "critical"
	warning  = "warning"
)

// alerts report faults to an operator before users notice them. Each is about one
// fault and resolves automatically.
var alerts = []rule{
	{
		alert: "TenureNobodyLeads", lasting: "30s", severity: critical,
		expression: `role:@leader_is_leader:sum == 0`,
		summary:    "No node leads {{ $labels.role }}",
		advice:     "Candidates for the role are scraped and none of them leads. See why they fail: tenure doctor, and their logs.",
	},
	{
		alert: "TenureTwoLead", lasting: "1m", severity: critical,
		expression: `role:@leader_is_leader:sum > 1`,
		summary:    "{{ $value }} nodes say that they lead {{ $labels.role }}",
		advice:     "This is a fault unless the role has just moved (one scrape). Stop one of the leaders, and look for an old primary that is still reachable.",
	},
	{
		alert: "TenureNotScraped", lasting: "5m", severity: critical,
		expression: `absent(@leader_roles_led)`,
		summary:    "No node is scraped",
		advice:     "None of the other alerts can fire without metrics. Check the targets of Prometheus.",
	},
	{
		alert: "TenureFlapping", severity: warning,
		expression: `role:@leader_failovers:increase15m > 5`,
		summary:    "The leadership of {{ $labels.role }} moved {{ $value | printf \"%.0f\" }} times in 15 minutes",
		advice:     "See the reasons: tenure history --role {{ $labels.role }}.",
	},
	{
		alert: "TenureLeadersLose", severity: warning,
		expression: `@leader_losses:increase15m > 0`,
		summary:    "Leaders lost roles that they did not give up",
		advice:     "Their sessions with the database ended, or were not renewed in time. See tenure history, and the load of the database.",
	},
	{
		alert: "TenureTrustLow", lasting: "10s", severity: warning,
		expression: `@leader_trust_remaining_seconds < @leader_trust_window_seconds / 3 and @leader_roles_led > 0`,
		summary:    "{{ $labels.instance }} cannot renew its lease",
		advice:     "It may lead for {{ $value | printf \"%.1f\" }} s more; then another node takes over. Check its network path to the database.",
	},
	{
		alert: "TenureDisconnected", lasting: "1m", severity: warning,
		expression: `@leader_connected == 0`,
		summary:    "{{ $labels.instance }} has no session with the database",
		advice:     "It cannot lead. See its log for the reason.",
	},
	{
		alert: "TenureNodeDied", severity: warning,
		expression: `max(delta(@cluster_nodes{status="dead"}[10m])) > 0`,
		summary:    "A node died",
		advice:     "See which: tenure node list. It counts for ten minutes.",
	},
	{
		alert: "TenureNoStandby", lasting: "5m", severity: warning,
		expression: `status:@cluster_nodes:max{status="active"} < 2`,
		summary:    "Only one node is active",
		advice:     "No standby takes over if it dies.",
	},
	{
		alert: "TenureDatabaseOutage", severity: warning,
		expression: `max(increase(@cluster_outages_total[10m])) > 0`,
		summary:    "No node reached the database for a time",
		advice:     "See when, for how long, and which roles: tenure history --outages.",
	},
	{
		alert: "TenureCallbackHangs", lasting: "1m", severity: warning,
		expression: `@leader_callback_oldest_seconds > 60`,
		summary:    "A callback on {{ $labels.instance }} hangs",
		advice:     "It has not returned for {{ $value | printf \"%.0f\" }} s, and later events wait for it.",
	},
	{
		alert: "TenureProcessorLags", lasting: "5m", severity: warning,
		expression: `processor:@processor_lag_seconds:max > 60`,
		summary:    "The processor {{ $labels.processor }} is {{ $value | printf \"%.0f\" }} s behind",
		advice:     "See whether it works, fails or waits: tenure processor list.",
	},
	{
		alert: "TenureHorizonStalled", lasting: "1m", severity: warning,
		expression: `max(@processor_horizon_age_seconds) > 300 and sum(max by (processor) (@processor_held_events)) > 0`,
		summary:    "Processors wait for a transaction that does not end",
		advice:     "It has been open for {{ $value | printf \"%.0f\" }} s. See whose it is, and end it: tenure processor lag.",
	},
	{
		alert: "TenureProcessorFails", lasting: "5m", severity: warning,
		expression: `max by (processor) (@processor_status{status="failed"}) > 0`,
		summary:    "The processor {{ $labels.processor }} has given up",
		advice:     "See its last error, and have it try again: tenure processor show, tenure processor retry.",
	},
	{
		alert: "TenureProcessorStuck", severity: warning,
		expression: `max by (processor) (@processor_stuck_seconds) > 60`,
		summary:    "The processor {{ $labels.processor }} has been unable to work for {{ $value | printf \"%.0f\" }} s",
		advice:     "It cannot read its log, cannot begin, or its handler does not return. See why: tenure processor show.",
	},
	{
		alert: "TenureProcessorUnmeasured", lasting: "1m", severity: warning,
		expression: `max by (processor) (@processor_lag_age_seconds) > 60 and max by (processor) (@processor_led) == 1`,
		summary:    "The lag of the processor {{ $labels.processor }} is {{ $value | printf \"%.0f\" }} s old",
		advice:     "Its leader cannot count the events that wait, so TenureProcessorLags cannot fire. See why: tenure processor show.",
	},
	{
		alert: "TenureProcessorNotLed", lasting: "1m", severity: warning,
		expression: `max by (processor) (@processor_led) == 0`,
		summary:    "No node runs the processor {{ $labels.processor }}",
		advice:     "No living node leads its role. See whether one campaigns for it: tenure status.",
	},
	{
		alert: "TenureScheduleFails", severity: warning,
		expression: `max by (schedule) (increase(@cron_failures_total[1h])) > 0`,
		summary:    "Runs of the schedule {{ $labels.schedule }} fail",
		advice:     "See the errors: tenure cron history.",
	},
	{
		alert: "TenureScheduleMissed", severity: warning,
		expression: `max by (schedule) (delta(@cron_missed_ticks[1h])) > 0`,
		summary:    "Ticks of the schedule {{ $labels.schedule }} were missed",
		advice:     "No node led when they were due. See which: tenure cron history.",
	},
	{
		alert: "TenureScheduleNotLed", lasting: "5m", severity: warning,
		expression: `max by (schedule) (@cron_loaded) == 0 and max by (schedule) (@cron_paused) == 0`,
		summary:    "No node runs the schedule {{ $labels.schedule }}",
		advice:     "No leader knows it: its ticks are missed. See which role it belongs to, and who leads that: tenure cron list, tenure status.",
	},
	{
		alert: "TenureScheduleStuck", lasting: "1m", severity: warning,
		expression: `max by (schedule) (@cron_errors) > 0 or max by (schedule) (@cron_overdue_seconds) > 60 and max by (schedule) (@cron_loaded) == 1`,
		summary:    "The schedule {{ $labels.schedule }} does not run",
		advice:     "Its leader cannot work, or handles no ticks. See the reason: tenure cron list -o json, and the log of the leader.",
	},
	{
		alert: "TenureScheduleAhead", lasting: "1m", severity: warning,
		expression: `max by (schedule) (@cron_ahead_seconds) > 60`,
		summary:    "The schedule {{ $labels.schedule }} waits {{ $value | printf \"%.0f\" }} s for the database's clock",
		advice:     "The clock was set back: ticks until a later time are handled. If the clock is right, have the schedule continue from now: tenure cron pause, tenure cron resume.",
	},
	{
		alert: "TenureRetentionFails", lasting: "5m", severity: warning,
		expression: `max by (rows) (@retention_consecutive_errors) > 0`,
		summary:    "Old rows cannot be removed: {{ $labels.rows }}",
		advice:     "Their table grows. See the last error, and what to do: tenure doctor.",
	},
	{
		alert: "TenureRetentionLate", lasting: "5m", severity: warning,
		expression: `max by (rows) (@retention_late_seconds) > 0`,
		summary:    "Rows are kept for too long: {{ $labels.rows }}",
		advice:     "The oldest should have been removed {{ $value | printf \"%.0f\" }} s ago. See whether the role log-compactor has a leader: tenure status.",
	},
	{
		alert: "TenureFiguresOld", lasting: "1m", severity: warning,
		expression: `time() - max(@work_read_timestamp_seconds) > 120`,
		summary:    "The figures of processors and schedules are old",
		advice:     "They could not be read from the database for {{ $value | printf \"%.0f\" }} s.",
	},
}
