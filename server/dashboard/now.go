package dashboard

// now is the cluster at a glance.
func (p *snapshot) now() nowRecord {
	p.mu.RLock()
	defer p.mu.RUnlock()
	shown := p.shownMembers()
	n := nowRecord{Roles: len(p.names), AllNodes: len(shown), Clock: p.clock(), Nodes: []nodeRecord{}}
	if p.problem != nil {
		since := p.problem.since
		if p.seen { // what is shown can be older than the problem: there may have been no viewer
			since = p.readAt
		}
		n.UnreadSince = p.onClock(since)
	}
	n.WorkUnreadSince, n.AlertsUnreadSince = p.unread.work.at(p.offset), p.unread.alerts.at(p.offset)
	leads := p.leads()
	for _, name := range p.names {
		switch p.roles[name].state {
		case led:
			n.Led++
		case silent:
			n.Silent++
		case atRest:
			n.AtRest++
		default:
			n.Vacant++
		}
	}
	for _, m := range shown {
		if p.nodeState(m) != dead {
			n.Living++
		}
	}
	for _, m := range p.nodesToPublish(shown, leads) {
		n.Nodes = append(n.Nodes, p.nodeRecord(m, leads))
	}
	for _, a := range p.alerts {
		switch {
		case a.State != "firing":
		case a.silenced():
			n.Silenced++
		default:
			n.Firing++
		}
	}
	n.Blocked = p.blockedNow()
	n.Health = p.health(n)
	return n
}
