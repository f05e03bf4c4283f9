package main

// endMutants break how the engine ends terms and elections.
var endMutants = []mutant{
	{
		name: "engine: events are delivered before the change is complete",
		file: "events.go", from: "	if len(q.waiting) == q.unreleased {\n", to: "	if len(q.waiting) == 0 {\n",
		promise: "callbacks find the change that caused them complete",
		tests:   []tests{in(".", "^TestEventsAreDeliveredWhenTheNodeIsUnlocked$")}, says: "can be delivered while the node is locked",
	},
	{
		name: "engine: a batch has any roles",
		file: "acquire.go", from: "		if last != nil && byRole(e, last) > 0 {\n", to: "		if last != nil && byRole(e, last) < 0 {\n",
		promise: "batches have the order of the roles",
		tests:   []tests{in(".", "^TestBatchHasTheFirstRoles$")}, says: "the roles were requested in their order",
	},
	{
		name: "engine: work that returned because its term was lost counts as failed",
		file: "run.go", from: "early = e.term == term && !term.stopRequested && term.Valid()", to: "early = e.term == term && !term.stopRequested && !term.ended.Load()",
		promise: "a lost term is no failure of work",
		tests:   []tests{in(".", "^TestLostTermIsNoFailureOfWork$")}, says: "lost terms that count as failures of work",
	},
	{
		name: "engine: a lost term is stepped down",
		file: "election.go", from: "if e.State() != Leading || !e.term.Valid() {", to: "if e.State() != Leading {",
		promise: "a term whose trust has ended is lost, not released",
		tests:   []tests{in(".", "^TestGivingUpLostTermIsALoss$")}, says: "cause of the loss",
	},
	{
		name: "engine: an election that stops after a failed attempt has no cause",
		file: "transition.go", from: "if from == Acquiring && input == fsm.DbError && to == Stopped {", to: "if false {",
		promise: "with NoReacquire, the error says why an attempt failed",
		tests:   []tests{in(".", "^TestTryAcquireReturnsCauseOfFailure$")}, says: "WaitForLeadership says why the attempt failed",
	},
	{
		name: "engine: a shutdown releases a lost term",
		file: "election.go", from: "if e.State() == Leading && !e.term.Valid() {", to: "if false {",
		promise: "a term whose trust has ended is lost, not released",
		tests:   []tests{in(".", "^TestGivingUpLostTermIsALoss$")}, says: "cause of the loss",
	},
	{
		name: "engine: the campaign for a term that ended too early has no cause",
		file: "run.go", from: "case missed != nil && missed.campaign:", to: "case false:",
		promise: "an election that stops on its own says why",
		tests:   []tests{in(".", "^TestCampaignReturnsCauseOfTermThatEndedTooEarly$")}, says: "cause of the end of the campaign",
	},
	{
		name: "engine: a canceled drain reports the next one as finished",
		file: "registry.go", from: "		n.undrains++\n", to: "		n.undrains += 0\n",
		promise: "10 a drained node leads nothing",
		tests:   []tests{in(".", "^TestCanceledDrainDoesNotReportTheNextOne$")}, says: "status, while it leads",
	},
	{
		name: "engine: a node with work in flight reports that it is drained",
		file: "drained.go", from: "if left := n.workInFlight(ctx); left > 0 {", to: "if left := n.workInFlight(ctx); left < 0 {",
		promise: "a drained node has nothing left to do",
		tests:   []tests{in("cluster", "^TestDrainOutlastsItsTimeoutWhileWorkRuns$")}, says: "want draining with 1",
	},
	{
		name: "engine: a heartbeat with work in flight ends the drain",
		file: "drained.go", from: "if !n.drainsOn || published.InFlight > 0 {", to: "if !n.drainsOn {",
		promise: "a drained node has nothing left to do",
		tests:   []tests{in(".", "^TestDrainWithWorkInFlightEndsWithTheWork$")}, says: "status with work in flight",
	},
	{
		name: "engine: a drain without a caller ends before the work under a term",
		file: "drained.go", from: "		if e.term != nil {\n", to: "		if e.term == nil {\n",
		promise: "10 a drained node leads nothing",
		tests:   []tests{in(".", "^TestDrainWithoutCallerEndsWithTheWork$")}, says: "status with work under a term",
	},
	{
		name: "engine: a drain outlives an undrain",
		file: "registry.go", from: "		n.drainsOn = false\n", to: "		n.drainsOn = n.drainsOn || false\n",
		promise: "an undrained node is active",
		tests:   []tests{in(".", "^TestUndrainEndsDrainWithWorkInFlight$")}, says: "status, which no drain set",
	},
	{
		name: "engine: a node is drained before the registry shows that its work ended",
		file: "drained.go", from: "	if n.refresh(ctx) != nil {\n", to: "	if ctx != nil {\n",
		promise: "a drained node has nothing left to do",
		tests:   []tests{in("cluster", "^TestDrainedNodeShowsNoWork$")}, says: "want drained with 0",
	},
	{
		name: "cluster: a node that only watches counts toward the minimum",
		file: "cluster/ready.go", from: "case accepts && slices.Contains(member.Roles, string(Observer)):", to: "case accepts && slices.Contains(member.Roles, \"\"):",
		promise: "only nodes that work count toward the minimum",
		tests:   []tests{in("cluster", "^TestMinNodesCountsNodesThatWork$")}, says: "with nodes that do not work",
	},
	{
		name: "cluster: a node without candidates is no observer",
		file: "cluster/member.go", from: "		if !slices.Contains(*roles, string(Observer)) {\n", to: "		if slices.Contains(*roles, string(Observer)) {\n",
		promise: "only nodes that work count toward the minimum",
		tests:   []tests{in("cluster", "^TestMinNodesCountsNodesThatWork$")}, says: "with nodes that do not work",
	},
	{
		name: "engine: a wait that precedes the first start fails",
		file: "election.go", from: "e.State() == Stopped && (e.runNumber > 0 || e.stopping) {", to: "e.State() == Stopped {",
		promise: "WaitForLeadership waits for a Run that has not begun",
		tests:   []tests{in(".", "^TestWaitForLeadershipWaitsForTheFirstStart$")}, says: "WaitForLeadership before Run",
	},
	{
		name: "doctor: tables of another program are not noticed",
		file: "postgres/internal/diagnosis/diagnosis.go", from: "if may && version == 0 {", to: "if may && version < 0 {",
		promise: "the doctor reports what opening a session reports",
		tests:   []tests{inCommand("internal/cli", "^TestDoctorReportsTablesOfAnotherProgram$")}, says: "and a node that opens",
	},
	{
		name: "alerts: an end has the latest incident",
		file: "server/internal/alerts/relate.go", from: "			i = incidentWith(a.GroupKey, incidents)\n", to: "			_ = incidentWith(a.GroupKey, incidents)\n",
		promise: "the messages of one alert have one incident",
		tests:   []tests{inServer("internal/alerts", "^TestAlertsGetTheirIncident$")}, says: "want that of the crash",
	},
	{
		name: "notifiers: an alert that fires immediately has lasted 0 s",
		file: "server/internal/notifiers/batch.go", from: "switch brief := lasted < time.Second; {", to: "switch brief := lasted < 0; {",
		promise: "a title says how long a fault has lasted",
		tests:   []tests{inServer("internal/notifiers", "^TestTitleFitsLockScreen$")}, says: "CRITICAL b: no leader for scheduler (since 03:12:07 UTC)",
	},
	{
		name: "incident: nodes that stop replace themselves",
		file: "internal/incident/group.go", from: "		if !stopped[n.Node] {\n", to: "		if true {\n",
		promise: "nodes that stop are not shown as replaced",
		tests:   []tests{in("internal/incident", "^TestGroupDescribesWhatHappened$")}, says: "shutdown: b stopped at",
	},
	{
		name: "history: a role whose run is overdue is at rest",
		file: "history/history.go", from: "(t.NextBy.IsZero() || now.Before(t.NextBy))", to: "(t.NextBy.IsZero() || now.After(t.Began))",
		promise: "a role counts as vacant when its next run is late",
		tests:   []tests{inCommand("internal/cli", "^TestShownIsWhatHappened$")}, says: "does not show",
	},
	{
		name: "postgres: a node that closed its silent session is recorded as crashed",
		file: "postgres/migrations/0001.up.sql", from: "NEW.incarnation <> OLD.incarnation AND NEW.fell_silent", to: "NEW.incarnation <> OLD.incarnation AND NOT NEW.fell_silent",
		promise: "a node whose trust window ended is not shown as crashed",
		tests:   []tests{inCommand("internal/cli", "^TestShownIsWhatHappened$")}, says: "does not show",
	},
	{
		name: "roster: a node that was replaced is dead",
		file: "internal/program/roster/roster.go", from: "if Dead(m) && latest[m.Name].After(m.LastHeartbeat) {", to: "if false {",
		promise: "a restarted node leaves no dead one in lists",
		tests:   []tests{inCommand("internal/cli", "^TestShownIsWhatHappened$")}, says: "does not show",
	},
}
