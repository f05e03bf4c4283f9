package main

// agentSessionMutants break the session of an agent with the database, and its socket.
// The tests of packages agent and agent/server catch each of them.
var agentSessionMutants = []mutant{
	// Trust.
	{
		name: "agent: ended trust is revived by a late answer",
		file: "agent/server/trust.go", from: "	if !t.maySend() {\n", to: "	if t.ended.Load() {\n",
		promise: "1 One leader: trust that has ended is never revived",
		tests:   []tests{in("agent/server", "^TestEndedTrustIsNotRevived$")}, says: "nvariant 1",
	},
	{
		name: "agent: trust counts from the answer to a heartbeat",
		file: "agent/server/serve.go", from: "!h.trust.extend(sent.Add(t.Lease-t.Margin))", to: "!h.trust.extend(h.now().Add(t.Lease-t.Margin))",
		promise: "1 One leader: trust is measured from the start of a heartbeat",
		tests:   []tests{in("agent", "^TestTrustCountsFromBeforeTheHeartbeatOfTheAgent$")}, says: "nvariant 1",
	},
	{
		name: "agent: trust lasts as long as the lease",
		file: "agent/server/serve.go", from: "!h.trust.extend(sent.Add(t.Lease-t.Margin))", to: "!h.trust.extend(sent.Add(t.Lease))",
		promise: "1 One leader: trust ends before the lease",
		tests:   []tests{in("agent", "^TestTrustEndsWithThatOfTheAgent$")}, says: "nvariant 1",
	},
	{
		name: "agent: a node's heartbeat extends its own trust",
		file: "agent/server/client.go", from: "Until: h.trust.limit(), Pending", to: "Until: h.now().Add(c.lease), Pending",
		promise: "1 One leader: no node trusts a term longer than its agent",
		tests:   []tests{in("agent", "^TestTrustEndsWithThatOfTheAgent$|^TestTrustCountsFromBeforeTheHeartbeatOfTheAgent$")}, says: "nvariant 1",
	},
	{
		name: "agent: a node accepts an agent whose clock is ahead",
		file: "agent/session.go", from: "answer.Opened.Now < before || answer.Opened.Now > wire.Now():", to: "answer.Opened.Now < before:",
		promise: "1 One leader: both sides of a moment have one clock",
		tests:   []tests{in("agent", "^TestAgentWithAnotherClockIsRefused$")}, says: "nvariant 1",
	},
	{
		name: "agent: a node accepts an agent whose clock is behind",
		file: "agent/session.go", from: "answer.Opened.Now < before || answer.Opened.Now > wire.Now():", to: "answer.Opened.Now < before.Add(-24*time.Hour) || answer.Opened.Now > wire.Now():",
		promise: "1 One leader: both sides of a moment have one clock",
		tests:   []tests{in("agent", "^TestAgentWithAnotherClockIsRefused$")}, says: "nvariant 1",
	},
	{
		name: "agent: a heartbeat that failed is repeated late",
		file: "agent/server/serve.go", from: "		h.nextBeat = h.now().Add(t.RefreshInterval / 10)\n", to: "		h.nextBeat = h.now().Add(t.RefreshInterval * 10)\n",
		promise: "7 Someone leads: one heartbeat that failed ends no term",
		tests:   []tests{in("agent", "^TestAgentSurvivesHeartbeatThatFails$")}, says: "nvariant 7",
	},
	{
		name: "agent: no heartbeat follows a term that is not durable",
		file: "agent/server/arbiter.go", from: "		h.beatSoon = h.beatSoon || result.NotDurable\n", to: "		_ = h.beatSoon || result.NotDurable\n",
		promise: "2 Terms increase: the record of a term is durable soon",
		tests:   []tests{in("agent", "^TestHeartbeatFollowsTermThatIsNotDurable$")}, says: "nvariant 2",
	},
	{
		name: "agent: the loads of nodes overflow what the database stores",
		file: "agent/server/host.go", from: "*to = min(*to+min(max(n, 0), math.MaxInt32), math.MaxInt32) }", to: "*to = min(*to+n, math.MaxInt64) }",
		promise: "7 Someone leads: no node ends the heartbeats of the others",
		tests:   []tests{in("agent", "^TestLoadsOfNodesFitTheDatabase$")}, says: "more than the database can store",
	},

	// What only a sequence of faults shows, see the simulated hosts.
	{
		name: "agent: trust lasts longer than the lease by the margin",
		file: "agent/server/serve.go", from: "!h.trust.extend(sent.Add(t.Lease-t.Margin))", to: "!h.trust.extend(sent.Add(t.Lease+t.Margin))",
		promise: "1 One leader: trust ends before the lease",
		tests:   []tests{in("agent/server", "^TestSimulatedHosts$")}, says: "nvariant 1",
	},
	{
		name: "agent: the locks of a lost session are freed a lease early",
		file: "agent/server/end.go", from: "	over := h.trust.limit().Add(h.cfg.Timing.Margin).Sub", to: "	over := h.trust.limit().Add(-h.cfg.Timing.Lease).Sub",
		promise: "1 One leader: the locks of a lost session last until no node can trust a term",
		tests:   []tests{in("agent/server", "^TestSimulatedHosts$")}, says: "nvariant 1",
	},
	{
		name: "agent: the end of a node that leads leaves the role locked",
		file: "agent/server/client.go", from: "	h.goneLocked(c, history.EndCrashed)\n", to: "	_ = history.EndCrashed\n",
		promise: "7 Someone leads: a node leads when the faults have ended",
		tests:   []tests{in("agent/server", "^TestSimulatedHosts$")}, says: "nvariant 7",
	},

	// The end of a session.
	{
		name: "agent: a lost session frees its locks while trust lasts",
		file: "agent/server/end.go", from: "	over := h.trust.limit().Add(h.cfg.Timing.Margin).Sub", to: "	over := h.trust.limit().Add(-h.cfg.Timing.Lease).Sub",
		promise: "1 One leader: the locks of a lost session last until no node can trust a term",
		tests:   []tests{in("agent", "^TestLostSessionKeepsItsLocksWhileNodesWork$|^TestLostSessionFreesItsLocksAfterTrust$")}, says: "nvariant 4",
	},
	{
		name: "agent: each lost session frees its locks",
		file: "agent/server/end.go", from: "h.windDown(errors.Is(err, tenure.ErrConnection))", to: "h.windDown(errors.Is(err, err))",
		promise: "4 Work first: the locks of a lost session last until the work has returned",
		tests:   []tests{in("agent", "^TestLostSessionKeepsItsLocksWhileNodesWork$")}, says: "nvariant 4",
	},
	{
		name: "agent: a lost session keeps its locks for nodes that are gone",
		file: "agent/server/end.go", from: "		case <-h.empty:\n		case <-h.closed:", to: "		case <-chan struct{}(nil):\n		case <-h.closed:",
		promise: "7 Someone leads: the locks of a lost session are freed when the work has returned",
		tests:   []tests{in("agent", "^TestLostSessionKeepsItsLocksWhileNodesWork$")}, says: "nvariant 7",
	},
	{
		name: "agent: an agent that ends frees the locks of a session lost since then",
		file: "agent/server/end.go", from: "h.windDown(errors.Is(err, tenure.ErrConnection))", to: "h.windDown(h.leaving || errors.Is(err, tenure.ErrConnection))",
		promise: "1 One leader: the locks of a lost session last until no node can trust a term",
		tests:   []tests{in("agent", "^TestEndingAgentKeepsLocksWhileNodesTrust$/^ended,_then_lost$")}, says: "nvariant 1",
	},
	{
		name: "agent: an agent that ends frees the locks of a session lost before",
		file: "agent/server/server.go", from: "	defer hosts.Wait()\n", to: "	_ = &hosts\n",
		promise: "1 One leader: the locks of a lost session last until no node can trust a term",
		tests:   []tests{in("agent", "^TestEndingAgentKeepsLocksWhileNodesTrust$/^lost,_then_ended$")}, says: "nvariant 1",
	},
	{
		name: "agent: nodes do not notice that the agent's session is lost",
		file: "agent/server/end.go", from: "		c.loseLocked(err)\n", to: "		_, _ = c, err\n",
		promise: "1 One leader: terms end when the session is lost",
		tests:   []tests{in("agent", "^TestLostSessionKeepsItsLocksWhileNodesWork$")}, says: "nvariant 1",
	},
	{
		name: "agent: a node aborts before its work has returned",
		file: "agent/session.go", from: "	return fmt.Errorf(\"%w: the agent: %s\", tenure.ErrSessionLost, err.Error())\n", to: "	return fmt.Errorf(\"%w: the agent: %w\", tenure.ErrSessionLost, err)\n",
		promise: "4 Work first: a role is released when the work has returned",
		tests:   []tests{in("agent", "^TestNodeKeepsItsConnectionWhileItsWorkRuns$")}, says: "nvariant 4",
	},
	{
		name: "agent: an agent that ends does not wait for the work of its nodes",
		file: "agent/server/server.go", from: "	timer := time.NewTimer(s.cfg.Timing.Lease)\n", to: "	timer := time.NewTimer(0)\n",
		promise: "4 Work first: a role is released when the work has returned",
		tests:   []tests{in("agent", "^TestLeavingAgentWaitsForTheWorkOfItsNodes$")}, says: "nvariant 4",
	},
	{
		name: "agent: an agent that ends leaves the database before its nodes",
		file: "agent/server/serve.go", from: "	case h.leaving && len(h.connected) == 0:\n", to: "	case h.leaving:\n",
		promise: "4 Work first: a role is released when the work has returned",
		tests:   []tests{in("agent", "^TestLeavingAgentWaitsForTheWorkOfItsNodes$")}, says: "nvariant 4",
	},
	{
		name: "agent: an agent that ends waits for a node for ever",
		file: "agent/server/server.go", from: "	timer := time.NewTimer(s.cfg.Timing.Lease)\n", to: "	timer := time.NewTimer(time.Hour)\n",
		promise: "an agent ends within one lease",
		tests:   []tests{in("agent", "^TestLeavingAgentWaitsForTheWorkOfItsNodes$")}, says: "the agent does not end",
	},
	{
		name: "agent: a closed session keeps its connection",
		file: "agent/session.go", from: "	s.Abort()\n	return err\n", to: "	_ = s.conn\n	return err\n",
		promise: "an agent waits for no node that has closed its session",
		tests:   []tests{in("agent", "^TestClosedSessionHoldsUpNoAgent$")}, says: "the agent does not end",
	},
	{
		name: "agent: an agent does not notice that its last node has left",
		file: "agent/server/client.go", from: "	if h.leaving && len(h.connected) == 0 {\n", to: "	if h.leaving && len(h.connected) < 0 {\n",
		promise: "an agent ends when its last node has left",
		tests:   []tests{in("agent", "^TestAgentEndsWithTheConnectionOfItsLastNode$")}, says: "after its last node closed its connection",
	},
	{
		name: "agent: a refusal ends an agent that runs",
		file: "agent/server/server.go", from: "			if ready != nil && errors.Is(err, tenure.ErrRefused) {\n", to: "			if errors.Is(err, tenure.ErrRefused) {\n",
		promise: "7 Someone leads: an agent opens sessions until it is asked to end",
		tests:   []tests{in("agent", "^TestAgentOutlivesRefusalOfLaterSession$")}, says: "nvariant 7",
	},

	// Who may connect.
	{
		name: "agent: nodes with rare heartbeats are accepted",
		file: "agent/server/client.go", from: "	most := t.Lease - t.Margin - t.RefreshInterval\n", to: "	most := t.Lease - t.Margin\n",
		promise: "7 Someone leads: trust lasts until the next heartbeat of a node",
		tests:   []tests{in("agent", "^TestAgentRefusesNodesThatDoNotFit$")}, says: ", want ErrRefused",
	},
	{
		name: "agent: nodes whose work ends too late are accepted",
		file: "agent/server/client.go", from: "	case open.Grace > most-open.Refresh:\n", to: "	case open.Grace > most:\n",
		promise: "4 Work first: work ends before trust does",
		tests:   []tests{in("agent", "^TestAgentRefusesNodesThatDoNotFit$")}, says: "to end: got error",
	},
	{
		name: "agent: nodes that want to settle for longer are accepted",
		file: "agent/server/client.go", from: "	case open.Settle > t.Settle:\n", to: "	case open.Settle > t.Settle+t.Lease:\n",
		promise: "1 One leader: a role settles as long as its nodes want",
		tests:   []tests{in("agent", "^TestAgentRefusesNodesThatDoNotFit$")}, says: ", want ErrRefused",
	},
	{
		name: "agent: nodes that want to wait longer after a failover are accepted",
		file: "agent/server/client.go", from: "	case open.FailoverWait > max(t.FailoverWait, t.Lease):\n", to: "	case open.FailoverWait > 24*time.Hour:\n",
		promise: "1 One leader: the wait after a server change is as long as the nodes want",
		tests:   []tests{in("agent", "^TestAgentRefusesNodesThatDoNotFit$")}, says: ", want ErrRefused",
	},
	{
		name: "agent: unique names are promised",
		file: "agent/backend.go", from: "	if options.UniqueName {\n", to: "	if options.UniqueName && b == nil {\n",
		promise: "a name that must be unique is, or the node is refused",
		tests:   []tests{in("agent", "^TestAgentRefusesNodesThatDoNotFit$")}, says: ", want ErrRefused",
	},
	{
		name: "agent: connections that have ended count",
		file: "agent/server/server.go", from: "			defer func() { <-s.slots }()\n", to: "			defer func() { _ = len(s.slots) }()\n",
		promise: "7 Someone leads: a node can connect when others have left",
		tests:   []tests{in("agent", "^TestConnectionsThatEndedDoNotCount$")}, says: "nvariant 7",
	},
	{
		name: "agent: other users can connect to the socket",
		file: "agent/server/socket_linux.go", from: "	err = os.Chmod(s.path, 0o600)\n", to: "	err = os.Chmod(s.path, 0o666)\n",
		promise: "the socket has the mode 0600",
		tests:   []tests{in("agent", "^TestSocketIsForItsUserOnly$")}, says: ", want 0600",
	},
	{
		name: "agent: two agents serve one path",
		file: "agent/server/socket_linux.go", from: "unix.LOCK_EX|unix.LOCK_NB", to: "unix.LOCK_SH|unix.LOCK_NB",
		promise: "1 One leader: a host has one agent at a path",
		tests:   []tests{in("agent", "^TestSecondAgentAtOnePathDoesNotStart$")}, says: "a second agent at the path of the first",
	},
	{
		name: "agent: an agent without its lock file takes the path back",
		file: "agent/server/socket_linux.go", from: "		case !socket.ours():\n", to: "		case !socket.ours() && reported:\n",
		promise: "1 One leader: a host has one agent at a path",
		tests:   []tests{in("agent", "^TestAgentWithoutItsLockFileLeavesThePathAlone$")}, says: "nvariant 1",
	},
	{
		name: "agent: a file at the path of the socket is replaced",
		file: "agent/server/socket_linux.go", from: "		if info.Mode().Type() != fs.ModeSocket {\n", to: "		if info.Mode().IsDir() {\n",
		promise: "an agent replaces nothing but a socket",
		tests:   []tests{in("agent", "^TestAgentRefusesDirectoryOfOthers$")}, says: "a file at the path: got error",
	},
	{
		name: "agent: users of the group can replace the socket",
		file: "agent/server/socket_linux.go", from: "info.Mode().Perm()&0o022 != 0", to: "info.Mode().Perm()&0o002 != 0",
		promise: "no other user can replace the socket of an agent",
		tests:   []tests{in("agent", "^TestAgentRefusesDirectoriesOfOthersAboveTheSocket$")}, says: ", want ErrInvalidConfig: ",
	},
}
