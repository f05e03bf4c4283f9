package processor

// Statements for tests of their plans.
const (
	NextReplays  = nextReplays
	MarkReplayed = markReplayed
	ReplayFailed = replayFailed
)
