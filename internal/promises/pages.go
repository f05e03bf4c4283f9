package promises

// The pages whose numbers have tests.
const (
	Guarantees = "docs/explanation/guarantees.md"
	Database   = "docs/reference/database.md"

	assignRows       = "docs/howto/assign-rows.md"
	deploy           = "docs/howto/deploy.md"
	formCluster      = "docs/howto/form-a-cluster.md"
	lead             = "docs/howto/lead.md"
	limitLeaders     = "docs/howto/limit-leaders.md"
	operate          = "docs/howto/operate.md"
	processEvents    = "docs/howto/process-events.md"
	publishEvents    = "docs/howto/publish-events.md"
	reachLeader      = "docs/howto/reach-the-leader.md"
	runCommand       = "docs/howto/run-a-command.md"
	scheduleJobs     = "docs/howto/schedule-jobs.md"
	secure           = "docs/howto/secure.md"
	sendAlerts       = "docs/howto/send-alerts.md"
	serveHTTP        = "docs/howto/serve-http.md"
	shareConnections = "docs/howto/share-connections.md"
	testCode         = "docs/howto/test-your-code.md"
	useAdapters      = "docs/howto/use-adapters.md"
	useDashboard     = "docs/howto/use-the-dashboard.md"
)
