package main

// engineMutants break the engine: the files of the root package.
var engineMutants = []mutant{
	// Trust.
	{
		name: "engine: a session may send after its trust has ended",
		file: "trust.go", from: "		return !t.ended.Load()\n	}\n	return t.valid()\n}", to: "		return !t.ended.Load()\n	}\n	return true\n}",
		promise: "7 Someone leads: a session whose trust has ended sends nothing that would restart the server's timer",
		tests:   []tests{in(".", "^TestNothingIsSentAfterTrustEnds$")}, says: "nvariant 7",
	},
	{
		name: "engine: no heartbeat follows a term that is not durable",
		file: "serve.go", from: "	if s.beatSoon {", to: "	if s.beatSoon && false {",
		promise: "the record of a term is durable within milliseconds",
		tests:   []tests{in(".", "^TestHeartbeatFollowsTermThatIsNotDurable$")}, says: "a heartbeat followed",
	},
	{
		name: "engine: a change made during a failed write of the description waits",
		file: "registry.go", from: "		if n.descriptionVersion == version {", to: "		if true {",
		promise: "a node updates the registry before it campaigns",
		tests:   []tests{in(".", "^TestChangeDuringFailedDescriptionWriteIsWrittenAtOnce$")}, says: "the registry has",
	},
	{
		name: "engine: trust is revived by a late answer",
		file: "trust.go", from: "func (t *trust) extend(until clocks.Instant) bool {\n	if !t.valid() {", to: "func (t *trust) extend(until clocks.Instant) bool {\n	if false {",
		promise: "1 One leader: trust that has ended is never revived",
		tests:   []tests{in(".", "^TestEndedTrustIsNotRevived$|^TestLateHeartbeatDoesNotReviveTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: trust counts from the answer of a heartbeat",
		file: "serve.go", from: "s.trust.extend(limitTrust(s.conn, sent.Add(", to: "s.trust.extend(limitTrust(s.conn, n.clock.Now().Add(",
		promise: "1 One leader: trust is measured from the start of a heartbeat",
		tests:   []tests{schedules(1000)}, says: "trusts term",
	},
	{
		name: "engine: trust is longer than the lease",
		file: "serve.go", from: "s.trust.extend(limitTrust(s.conn, sent.Add(n.cfg.Lease-n.cfg.Margin)))", to: "s.trust.extend(limitTrust(s.conn, sent.Add(n.cfg.Lease+n.cfg.Margin)))",
		promise: "1 One leader: trust ends before the lease",
		tests:   []tests{in(".", "^TestSessionLimitsTrust$"), schedules(1000)}, says: "nvariant 1",
	},
	{
		name: "engine: trust counts from the answer of the first heartbeat",
		file: "opening.go", from: "		sent = n.clock.Now()\n		s.sendsHeartbeat(sent)\n", to: "		defer func() { sent = n.clock.Now() }()\n		s.sendsHeartbeat(sent)\n",
		promise: "1 One leader: trust is measured from the start of a heartbeat",
		tests:   []tests{in(".", "^TestTrustCountsFromBeforeHeartbeat$")}, says: "nvariant 1",
	},
	{
		name: "engine: a heartbeat that failed extends trust",
		file: "serve.go", from: "	if err == nil && !s.trust.extend(", to: "	if !s.trust.extend(",
		promise: "1 One leader: only an acknowledged heartbeat extends trust",
		tests:   []tests{in(".", "^TestFailedHeartbeatDoesNotExtendTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: a term begins after trust has ended",
		file: "acquire.go", from: "	if !s.trust.add(t) {", to: "	if !s.trust.add(t) && false {",
		promise: "1 One leader: no term begins in a session whose trust has ended",
		tests:   []tests{in(".", "^TestNoTermBeginsAfterTrustEnds$")}, says: "nvariant 1",
	},
	{
		name: "engine: a term begins after trust has ended unnoticed",
		file: "trust.go", from: "	if !t.valid() {\n		return false\n	}\n	t.mu.Lock()", to: "	if t.ended.Load() {\n		return false\n	}\n	t.mu.Lock()",
		promise: "1 One leader: no term begins in a session whose trust has ended",
		tests:   []tests{in(".", "^TestNoTermBeginsAfterTrustEnds$")}, says: "nvariant 1",
	},
	{
		name: "engine: the wall clock does not end trust",
		file: "trust.go", from: "int64(now.Mono) < t.mono.Load() && now.Wall.UnixNano() < t.wall.Load()", to: "int64(now.Mono) < t.mono.Load()",
		promise: "1 One leader: a machine that was suspended does not lead when it wakes",
		tests:   []tests{in(".", "^TestWallClockEndsTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: the monotonic clock does not end trust",
		file: "trust.go", from: "int64(now.Mono) < t.mono.Load() && now.Wall", to: "now.Wall",
		promise: "1 One leader: a wall clock that is set back does not prolong trust",
		tests:   []tests{in(".", "^TestEndedTrustIsNotRevived$")}, says: "nvariant 1",
	},
	{
		name: "engine: contexts end by the wall clock alone",
		file: "trust.go", from: "max(0, min(mono, wall, limit))", to: "max(0, min(mono-mono+wall, limit))",
		promise: "1 One leader: a wall clock that is set back does not delay the end of a context",
		tests:   []tests{in(".", "^TestMonotonicClockEndsTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: contexts end by the monotonic clock alone",
		file: "trust.go", from: "max(0, min(mono, wall, limit))", to: "max(0, min(mono, wall-wall+mono, limit))",
		promise: "1 One leader: a wall clock that is set forward ends contexts with trust",
		tests:   []tests{in(".", "^TestWallClockJumpEndsTermWithinOneTick$")}, says: "nvariant 1",
	},
	{
		name: "engine: the clocks are not checked before the deadline",
		file: "trust.go", from: "t.remaining(tick)", to: "t.remaining(1000*tick)",
		promise: "1 One leader: work learns within a second that its machine was suspended",
		tests:   []tests{in(".", "^TestWallClockJumpEndsTermWithinOneTick$")}, says: "nvariant 1",
	},
	{
		name: "engine: a failed heartbeat is not tried again soon",
		file: "serve.go", from: "s.nextBeat = n.clock.Now().Mono + n.cfg.RefreshInterval/10", to: "s.nextBeat = n.clock.Now().Mono + n.cfg.RefreshInterval*10",
		promise: "7 Someone leads: one failed heartbeat does not depose a leader",
		tests:   []tests{in(".", "^TestFailedHeartbeatDoesNotExtendTrust$")}, says: "the term is valid after heartbeats failed",
	},

	{
		name: "engine: a LockTimeout below FenceTimeout is accepted",
		file: "config.go", from: "	if c.LockTimeout < c.FenceTimeout {\n", to: "	if c.LockTimeout < 0*c.FenceTimeout {\n",
		promise: "7 Someone leads: an attempt lasts until fenced transactions are ended",
		tests:   []tests{in(".", "^TestConfigRejectsInvalidSettings$")}, says: "the lock timeout is 1s and the fence timeout",
	},
	{
		name: "engine: the end of trust cancels no context",
		file: "trust.go", from: "		term.cancel(cause)\n	}\n	if stop != nil {", to: "		_ = term.cancel\n	}\n	if stop != nil {",
		promise: "1 One leader: contexts end without the engine's mutex",
		tests:   []tests{in(".", "^TestContextsEndWithoutMutex$|^TestContextsEndWithSessionWithoutMutex$")}, says: "nvariant 1",
	},

	// The loss of a session.
	{
		name: "engine: a heartbeat that says the session is lost is a failed one",
		file: "serve.go", from: "	if errors.Is(err, ErrSessionLost) {\n		return err\n	}\n	if err == nil &&", to: "	if errors.Is(err, ErrSessionLost) && false {\n		return err\n	}\n	if err == nil &&",
		promise: "1 One leader: trust ends in the instant in which a call says that the session is lost",
		tests:   []tests{in(".", "^TestSessionLossInAnyCallEndsTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: a release that fails is forgotten",
		file: "release.go", from: "		err = s.endTrust(withDetail(ErrSessionLost, err)) // a lock may still be held", to: "		err = withDetail(nil, nil) // a lock may still be held",
		promise: "1 One leader: a lock may still be held, so the session is given up",
		tests:   []tests{in(".", "^TestSessionLossInAnyCallEndsTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: requests that say the session is lost are a failure",
		file: "requests.go", from: "	if lost = onlySessionLoss(s.endTrust(err)); err", to: "	if err",
		promise: "1 One leader: trust ends in the instant in which a call says that the session is lost",
		tests:   []tests{in(".", "^TestSessionLossInAnyCallEndsTrust$")}, says: "nvariant 1",
	},
	{
		name: "engine: a request for a role of no election ends another term",
		file: "requests.go", from: "		e := n.elections[r.Role]\n		if s.ended", to: "		e := func() (e *Election) { for _, e = range n.elections {}; return e }()\n		if s.ended",
		promise: "a request for a role that the node does not campaign for changes nothing",
		tests:   []tests{in(".", "^TestRequestForUnknownRoleChangesNothing$")}, says: "the term of another role is valid",
	},
	{
		name: "engine: a grant to a session that is over counts",
		file: "acquire.go", from: "	if s.ended {\n		n.mu.Unlock()\n		return nil\n", to: "	if s.ended && false {\n		n.mu.Unlock()\n		return nil\n",
		promise: "7 Someone leads: a node whose session was lost in an attempt campaigns again",
		tests:   []tests{in(".", "^TestGrantOfLostSessionIsIgnored$")}, says: "nvariant 7",
	},
	{
		name: "engine: an attempt stays pending after its session",
		file: "session_end.go", from: "		e.attempt.pending, e.attempt.fencedSince = false, 0\n", to: "		e.attempt.fencedSince = 0\n",
		promise: "7 Someone leads: a node whose session was lost in an attempt campaigns again",
		tests:   []tests{in(".", "^TestPendingAttemptEndsWithSession$")}, says: "nvariant 7",
	},
	{
		name: "engine: closing leaves a stuck connection open",
		file: "session_end.go", from: "	case <-s.node.abandonWork:\n", to: "	case <-chan struct{}(nil):\n",
		promise: "7 Someone leads: a node that closes frees its roles when its time is over, whatever its work does",
		tests:   []tests{in(".", "^TestCloseWaitsForStuckWork$")}, says: "the connection is closed when Close gives up",
	},
	{
		name: "engine: a connection that timed out has ended",
		file: "session_end.go", from: "	if errors.Is(cause, ErrConnection) && !timedOut(cause) {", to: "	if errors.Is(cause, ErrConnection) {",
		promise: "1 One leader: a role is not reported as vacant while the server may hold its lock",
		tests:   []tests{in(".", "^TestPreviousSessionEndIsReported$")}, says: "the previous session ended at",
	},

	// The end of a term.
	{
		name: "engine: a role is released under running work",
		file: "term_end.go", from: "|| running || t.releaseQueued {", to: "|| running && t.releaseQueued || t.releaseQueued {",
		promise: "4 Work ends first",
		tests:   []tests{in(".", "^TestStepDownKeepsLockUnderStuckWork$|^TestStepDownWaitsForGuards$"), schedules(100)}, says: "nvariant 4",
	},
	{
		name: "engine: a term that was given up stays valid",
		file: "term.go", from: "return !t.ended.Load() && t.session.trust.valid()", to: "return t.session.trust.valid()",
		promise: "1 One leader: no node trusts a term that was given up",
		tests:   []tests{in(".", "^TestGivenUpTermIsInvalid$")}, says: "nvariant 1",
	},
	{
		name: "engine: a term that was given up has time left",
		file: "term.go", from: "	if t.ended.Load() {\n		return 0\n	}\n	return t.session.trust.remaining", to: "	if t.ended.Load() && false {\n		return 0\n	}\n	return t.session.trust.remaining",
		promise: "1 One leader: no node trusts a term that was given up",
		tests:   []tests{in(".", "^TestGivenUpTermIsInvalid$")}, says: "remains valid",
	},
	{
		name: "engine: contexts are not canceled when a term is given up",
		file: "term_end.go", from: "	t.cancel(cause)\n	t.session.trust.remove(t)", to: "	_ = cause\n	t.session.trust.remove(t)",
		promise: "4 Work ends first: its context is canceled before the role is released",
		tests:   []tests{in(".", "^TestGivenUpTermCancelsContext$|^TestGivenUpTermIsInvalid$")}, says: "nvariant 4",
	},
	{
		name: "engine: the connection is closed under running work",
		file: "session_end.go", from: "go s.closeWhenIdle(now)", to: "go s.closeWhenIdle(now || true)",
		promise: "4 Work ends first: a closed connection frees the locks",
		tests:   []tests{in(".", "^TestConnectionOutlivesTheWork$")}, says: "nvariant 4",
	},
	{
		name: "engine: the connection does not wait for the work",
		file: "session_end.go", from: "	if s.ended && len(s.terms) == 0 {", to: "	if s.ended {",
		promise: "4 Work ends first: a closed connection frees the locks",
		tests:   []tests{in(".", "^TestConnectionOutlivesTheWork$")}, says: "nvariant 4",
	},
	{
		name: "engine: a session counts as ended while its work runs",
		file: "session_end.go", from: "		if e.term != nil {\n			return 0\n", to: "		if e.term != nil && false {\n			return 0\n",
		promise: "4 Work ends first: after a restart of the server, others wait while canceled work runs",
		tests:   []tests{in(".", "^TestNoAttemptWhileOldWorkRuns$")}, says: "incarnation that counts as ended while its work runs",
	},
	{
		name: "engine: a node campaigns while its old work runs",
		file: "acquire.go", from: "if e.term != nil || a.inFlight || a.unlocking || !e.mayCampaignLocked() {", to: "if a.inFlight || a.unlocking || !e.mayCampaignLocked() {",
		promise: "4 Work ends first: no campaign while work of the last term runs in the process",
		tests:   []tests{in(".", "^TestNoAttemptWhileOldWorkRuns$")}, says: "nvariant 4",
	},
	{
		name: "engine: stuck work is never canceled",
		file: "term_end.go", from: "			t.endLocked(t.plannedEnd.cause)\n		}\n	})", to: "			_ = t.plannedEnd.cause\n		}\n	})",
		promise: "7 Someone leads: work has StopTimeout to end, then its context ends",
		tests:   []tests{in(".", "^TestStepDownKeepsLockUnderStuckWork$|^TestRunStopsGracefully$")}, says: "stuck work is canceled after",
	},
	{
		name: "engine: polite work is cut off",
		file: "term_end.go", from: "if t.stopRequested && !graceful {", to: "if t.stopRequested && (graceful || !graceful) {",
		promise: "a resignation lets work in flight end first",
		tests:   []tests{in(".", "^TestRunStopsGracefully$|^TestStepDownWaitsForGuards$")}, says: "trusted while work is in flight",
	},
	{
		name: "engine: a guard that is released twice counts twice",
		file: "guard.go", from: "	g.once.Do(func() {\n", to: "	func(release func()) { release() }(func() {\n",
		promise: "4 Work ends first: the role waits for every guard",
		tests:   []tests{in(".", "^TestGuardDoneTwiceCountsOnce$")}, says: "nvariant 4",
	},
	{
		name: "engine: a draining node does not give up its roles",
		file: "drain.go", from: "	for _, e := range elections {\n		if target := targets[e]; ", to: "	for _, e := range elections[:0] {\n		if target := targets[e]; ",
		promise: "10 a drained node leads nothing",
		tests:   []tests{in(".", "^TestDrainReleasesRolesUntilUndrain$|^TestDrainWaitsForStuckWork$")}, says: "leads after the drain",
	},
	{
		name: "engine: a drain does not wait until the roles are free",
		file: "drain.go", from: "		if err := term.election.awaitRelease(ctx, term, \"drain\"); errors.Is(err, ErrShutdown) {", to: "		if err := term.releaseErr; errors.Is(err, ErrShutdown) {",
		promise: "10 a drained node leads nothing",
		tests:   []tests{in(".", "^TestDrainWaitsForStuckWork$")}, says: "Drain with stuck work",
	},
	{
		name: "engine: a draining node hands over to itself",
		file: "drain.go", from: "target == uuid.Nil || target == n.id {", to: "target == uuid.Nil {",
		promise: "a leader does not hand its role over to itself",
		tests:   []tests{in(".", "^TestDrainHandsRolesOver$")}, says: "handed over",
	},
	{
		name: "engine: a drain that was canceled gives up the roles",
		file: "drain.go", from: "	if n.description.Status != StatusDraining {\n", to: "	if n.description.Status != StatusDraining && false {\n",
		promise: "a node that was taken back into service keeps its roles",
		tests:   []tests{in(".", "^TestGrantAfterUndrainBeginsTerm$|^TestUndrainCancelsDrain$")}, says: "leads after the drain was canceled",
	},
	{
		name: "engine: the lock of an attempt is kept when its election stops",
		file: "node.go", from: "		n.session.queueUnlockLocked(e, 0)\n", to: "		_ = n.session.queueUnlockLocked\n",
		promise: "7 Someone leads: a lock without a candidate is released",
		tests:   []tests{in(".", "^TestShutdownReleasesRoleOfFailedAttempt$"), in(".", "^TestDrainReleasesPendingRoleOnce$")}, says: "the role is free",
	},
	{
		name: "engine: a stopping term takes new work",
		file: "guard.go", from: "if t.work.closed || !t.Valid() {", to: "if !t.Valid() {",
		promise: "4 Work ends first: a term that stops takes no new work",
		tests:   []tests{in(".", "^TestStepDownWaitsForGuards$")}, says: "nvariant 4",
	},
	{
		name: "engine: IsLeader does not look at the clock",
		file: "election.go", from: "	term := e.current.Load()\n	return term != nil && term.Valid()\n", to: "	term := e.current.Load()\n	return term != nil\n",
		promise: "1 One leader: IsLeader compares with the deadline on every call",
		tests:   []tests{schedules(400)}, says: "trusts term",
	},

	// Campaigning.
	{
		name: "engine: a notification starts no attempt",
		file: "serve.go", from: "		s.requestsPending = true\n		s.attemptAllNowLocked()\n", to: "		s.requestsPending = true\n		_ = s.attemptAllNowLocked\n",
		promise: "7 Someone leads: a vacant role is filled immediately after a notification",
		tests:   []tests{in(".", "^TestNotificationStartsAttempt$")}, says: "after a notification",
	},
	{
		name: "engine: a notification continues no pending attempt",
		file: "acquire.go", from: "		e.attempt.nextAt = now\n", to: "		if !e.attempt.pending { e.attempt.nextAt = now }\n",
		promise: "7 Someone leads: after a change of the server, as soon as all nodes are back",
		tests:   []tests{in(".", "^TestNotificationContinuesPendingAttempt$")}, says: "leads after the notification",
	},
	{
		name: "engine: there is one attempt per notification",
		file: "acquire.go", from: "if a.quickRetries > 0 && result.RetryIn", to: "if a.quickRetries > 99 && result.RetryIn",
		promise: "7 Someone leads: a lock that a dying session has not freed yet is tried again after milliseconds",
		tests:   []tests{in(".", "^TestNotificationStartsAttempt$"), schedules(200)}, says: "a lock freed late was taken after",
	},
	{
		name: "engine: a draining node campaigns",
		file: "eligibility.go", from: "return n.description.Status == StatusActive && !n.cfg.NoLeader", to: "return n.description.Status != StatusDead && !n.cfg.NoLeader",
		promise: "10 only a node in service begins a term",
		tests:   []tests{in(".", "^TestDrainReleasesPendingRoleOnce$|^TestDrainReleasesRolesUntilUndrain$")}, says: "leads while drained",
	},
	{
		name: "engine: a node without a required label or node role campaigns",
		file: "eligibility.go", from: "return e.meetsRequirementsLocked() && e.node.mayCampaignLocked()", to: "return e.node.mayCampaignLocked()",
		promise: "10 only a node in service begins a term",
		tests:   []tests{in(".", "^TestElectionRequiresLabels$"), in(".", "^TestElectionRequiresNodeRole$")}, says: "leads without the label",
	},
	{
		name: "engine: a role moves between equally preferred nodes",
		file: "prefer.go", from: "|| score.Compare(e.ownScoreLocked()) >= 0 {", to: "|| score.Compare(e.ownScoreLocked()) > 0 {",
		promise: "a role moves only to a more preferred node",
		tests:   []tests{in(".", "^TestRoleMovesOnlyToMorePreferredNode$")}, says: "the first term is valid",
	},
	{
		name: "engine: a node takes over again and again without a longer wait",
		file: "prefer.go", from: "	case t.takenOver:", to: "	case false:",
		promise: "short terms delay the next take-over",
		tests:   []tests{in(".", "^TestFailingWorkDoublesWaitToTakeOver$")}, says: "took over after",
	},
	{
		name: "engine: a term granted to an election that stopped is kept",
		file: "acquire.go", from: "stopped := state != Acquiring && state != Reconnecting", to: "stopped := state == Stopped && state != Reconnecting && false",
		promise: "7 Someone leads: a lock without a candidate is released",
		tests:   []tests{in(".", "^TestShutdownReleasesPendingRoleOnce$"), in(".", "^TestConcurrentCallsKeepStatesInOrder$")}, says: "nvariant 7",
	},
	{
		name: "engine: NoReacquire is ignored",
		file: "transition.go", from: "AutoReacquire: !e.cfg.NoReacquire && !campaign,", to: "AutoReacquire: !campaign,",
		promise: "with NoReacquire an election stops after a loss",
		tests:   []tests{in(".", "^TestNoReacquireStopsAfterLoss$")}, says: "events of a loss",
	},
	{
		name: "engine: a node that stepped down campaigns immediately",
		file: "transition.go", from: "n.clock.Now().Mono+min(stepDownPause, n.cfg.CheckInterval/2)\n", to: "n.clock.Now().Mono\n",
		promise: "a node that stepped down pauses before it campaigns again",
		tests:   []tests{in(".", "^TestStepDown|^TestRunPausesAfterEarlyReturn$")}, says: "the standby leads",
	},
	{
		name: "engine: a pause after a step-down outlasts the next term",
		file: "transition.go", from: "e.attempt.yieldTerm, e.attempt.yieldUntil = term.number,", to: "e.attempt.notBefore, e.attempt.yieldUntil = n.clock.Now().Mono+stepDownPause,",
		promise: "the pause after a step-down ends when another term has begun or the role is reserved for the node",
		tests:   []tests{in(".", "^TestStepDownPauseEndsWithNextTerm$")}, says: "the first node leads again",
	},
	{
		name: "engine: work that fails immediately leads again immediately",
		file: "run.go", from: "e.attempt.notBefore = n.clock.Now().Mono + next.delay", to: "e.attempt.notBefore = n.clock.Now().Mono - next.delay",
		promise: "after work that returned early the node pauses",
		tests:   []tests{in(".", "^TestRunPausesAfterEarlyReturn$")}, says: "terms in 0, 5, 15 and 35 s",
	},
	{
		name: "engine: a lease may be shorter than what a heartbeat needs",
		file: "config.go", from: "if c.RefreshInterval+c.Margin >= c.Lease {", to: "if c.RefreshInterval+c.Margin >= 2*c.Lease {",
		promise: "settings that cannot work are refused",
		tests:   []tests{in(".", "^TestConfigRejectsInvalidSettings$")}, says: "must be longer than",
	},
	{
		name: "engine: the panic of work whose term is lost is hidden",
		file: "run.go", from: "		return e.finishedLocked(r.number)\n	})\n}", to: "		return false\n	})\n}",
		promise: "a panic of work ends Run",
		tests:   []tests{in(".", "^TestPanicOfWorkEndsRun")}, says: "a day of simulated time",
	},
	{
		name: "engine: closing does not wait for the work",
		file: "close.go", from: "		if failed == nil {\n			failed = e.awaitFinished(", to: "		if failed != nil {\n			failed = e.awaitFinished(",
		promise: "4 Work ends first: Close waits until the work has returned",
		tests:   []tests{in(".", "^TestCloseWaitsForStuckWork$|^TestElectionPassesThroughItsStates$"), schedules(100)}, says: "Close with stuck work",
	},

	// Waiting for a role.
	{
		name: "engine: LockTimeout never ends an attempt",
		file: "acquire.go", from: "if now-a.fencedSince < s.node.cfg.LockTimeout {", to: "if now-a.fencedSince < 1000*s.node.cfg.LockTimeout {",
		promise: "7 Someone leads: a node that cannot begin its term releases the role after LockTimeout",
		tests:   []tests{in(".", "^TestLockTimeoutReleasesLock$")}, says: "nvariant 7",
	},
	{
		name: "engine: LockTimeout restarts with each answer",
		file: "acquire.go", from: "	if a.fencedSince == 0 {\n", to: "	if a.fencedSince >= 0 {\n",
		promise: "7 Someone leads: a node that cannot begin its term releases the role after LockTimeout",
		tests:   []tests{in(".", "^TestLockTimeoutReleasesLock$")}, says: "nvariant 7",
	},
	{
		name: "engine: the lock is kept when LockTimeout has passed",
		file: "acquire.go", from: "	a.pending = false\n	s.queueUnlockLocked(e, 0)\n	err :=", to: "	a.pending = false\n	_ = s.queueUnlockLocked\n	err :=",
		promise: "7 Someone leads: a node that cannot begin its term releases the role after LockTimeout",
		tests:   []tests{in(".", "^TestLockTimeoutReleasesLock$")}, says: "nvariant 7",
	},
	{
		name: "engine: LockTimeout continues in the next attempt",
		file: "acquire.go", from: "	if !continued {\n		a.fencedSince = 0\n", to: "	if !continued {\n		_ = a.fencedSince\n",
		promise: "7 Someone leads: each attempt has LockTimeout",
		tests:   []tests{in(".", "^TestLockTimeoutReleasesLock$")}, says: "LockTimeout",
	},
	{
		name: "engine: LockTimeout bounds the wait for Settle",
		file: "acquire.go", from: "	if !result.Fenced {\n", to: "	if !result.Fenced && false {\n",
		promise: "7 Someone leads: a wait that the protocol requires does not restart",
		tests:   []tests{in(".", "^TestLockTimeoutBoundsOnlyFencedTransactions$")}, says: "releases of the lock",
	},

	// Handing over.
	{
		name: "engine: a request to hand over to the own node is accepted",
		file: "requests.go", from: " && n.validateTarget(r.Target) == nil {", to: " {",
		promise: "a leader does not hand its role over to itself",
		tests:   []tests{in(".", "^TestHandOverNeedsAnotherNode$")}, says: "the leader gave up its term",
	},
	{
		name: "engine: a call to hand over to the own node is accepted",
		file: "stepdown.go", from: "	if why.reason == endreason.HandedOver {", to: "	if why.reason == endreason.HandedOver && false {",
		promise: "a leader does not hand its role over to itself",
		tests:   []tests{in(".", "^TestHandOverNeedsAnotherNode$")}, says: "the leader gave up its term",
	},
	{
		name: "engine: a hand-over without a target is accepted",
		file: "stepdown.go", from: "	case uuid.Nil:\n		return fmt", to: "	case uuid.Max:\n		return fmt",
		promise: "a leader does not hand its role over to no node",
		tests:   []tests{in(".", "^TestHandOverNeedsAnotherNode$")}, says: "the leader gave up its term",
	},
	{
		name: "engine: an attempt without a result ends TryAcquire without a term",
		file: "try.go", from: "		return term != nil || failed != nil\n", to: "		return term != nil || failed != nil || e.attempt.totalFailures != failures\n",
		promise: "TryAcquire returns a term or an error",
		tests:   []tests{in(".", "^TestTryAcquireReturnsTermOrError$")}, says: "want a term",
	},
	{
		name: "engine: a hand-over reserves nothing",
		file: "release.go", from: "		if planned.reason == endreason.HandedOver {", to: "		if planned.reason == endreason.HandedOver && false {",
		promise: "a role that is handed over is left to its target",
		tests:   []tests{in(".", "^TestReservationBindsOtherCandidates$")}, says: "during its reservation",
	},
	{
		name: "engine: a reservation lasts no time",
		file: "release.go", from: "planned.target, n.cfg.CheckInterval\n", to: "planned.target, 0*n.cfg.CheckInterval\n",
		promise: "a role that is handed over is left to its target",
		tests:   []tests{in(".", "^TestReservationBindsOtherCandidates$")}, says: "during its reservation",
	},
	{
		name: "engine: a candidate does not wait until a reservation is over",
		file: "acquire.go", from: "min(result.RetryIn, n.cfg.CheckInterval)\n", to: "10*time.Millisecond\n",
		promise: "during a reservation for another node a candidate tries only after notifications",
		tests:   []tests{in(".", "^TestReservationBindsOtherCandidates$")}, says: "without a notification",
	},
	{
		name: "engine: a reserved role is tried again and again after a notification",
		file: "acquire.go", from: "if a.quickRetries > 0 && result.RetryIn == 0 && !result.Led {", to: "if a.quickRetries > 0 && !result.Led {",
		promise: "during a reservation for another node a candidate tries once after each notification",
		tests:   []tests{in(".", "^TestReservationBindsOtherCandidates$")}, says: "attempts of a standby",
	},
	{
		name: "engine: a reserved role is tried only after notifications",
		file: "acquire.go", from: "min(result.RetryIn, n.cfg.CheckInterval)\n", to: "result.RetryIn\n",
		promise: "7 Someone leads: within the check interval if every notification is lost",
		tests:   []tests{in(".", "^TestReservedRoleIsTriedAtCheckIntervals$")}, says: "leads within a check interval",
	},

	// Groups.
	{
		name: "engine: a node asks for more roles of a group than the limit permits",
		file: "group.go", from: "		if room > 0 {\n			admitted", to: "		if true {\n			admitted",
		promise: "a node leads at most GroupLimit roles of a group",
		tests:   []tests{in(".", "^TestGroupLimitsRoles$|^TestGroupKeepsItsLimitUnderRandomFaults$")}, says: "roles asks for another one",
	},
	{
		name: "engine: one call asks for more roles of a group than there is room",
		file: "group.go", from: "		rooms[g] = room - 1\n", to: "		rooms[g] = room\n",
		promise: "a node leads at most GroupLimit roles of a group",
		tests:   []tests{in(".", "^TestGroupLimitsRoles$|^TestGroupKeepsItsLimitUnderRandomFaults$")}, says: "roles asks for another one",
	},
	{
		name: "engine: work that still runs uses no room in its group",
		file: "group.go", from: "	return e.term != nil || state == Reconnecting ||", to: "	return e.term != nil && !e.term.ended.Load() || state == Reconnecting ||",
		promise: "a node works for at most GroupLimit roles of a group",
		tests:   []tests{in(".", "^TestGroupCountsRunningWork$")}, says: "leads while the work runs",
	},
	{
		name: "engine: a pending attempt uses no room in its group",
		file: "group.go", from: "	return e.attempt.mayHoldLock() || e.keeps", to: "	return e.keeps",
		promise: "a node leads at most GroupLimit roles of a group",
		tests:   []tests{in(".", "^TestGroupCountsPendingAttempt$")}, says: "leads while an attempt is pending",
	},
	{
		name: "engine: a node whose work failed campaigns for the other roles of the group",
		file: "group.go", from: " || state != Stopped && e.attempt.notBefore > now\n", to: "\n",
		promise: "a node whose work failed leaves the roles of the group to other candidates",
		tests:   []tests{in(".", "^TestGroupStaysBehindAfterFailedWork$")}, says: "terms began",
	},
	{
		name: "engine: a node that left a role of a group waits before it tries the others",
		file: "group.go", from: "other.attempt.nextAt = min(other.attempt.nextAt, now)", to: "other.attempt.nextAt = max(other.attempt.nextAt, now)",
		promise: "7 Someone leads: a vacant role of a group is led while a node has room",
		tests:   []tests{in(".", "^TestGroupUsesRoomWithoutNotification$")}, says: "leads the vacant role",
	},
	{
		name: "engine: a role is handed over to a node without room",
		file: "group.go", from: "	if err == nil && led[target] >= e.group.limit {", to: "	if err == nil && led[target] > e.group.limit {",
		promise: "7 Someone leads: a role of a group is reserved for no node that cannot lead it",
		tests:   []tests{in(".", "^TestGroupRefusesHandOverWithoutRoom$")}, says: "HandOver to a node without room",
	},
}
