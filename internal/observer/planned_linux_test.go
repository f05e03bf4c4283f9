package observer

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// requester is whom the commands record: the user of this process at this host.
func requester() string {
	host, _ := os.Hostname()
	name := "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + host
}

// planned is a move that a leader made: its process reports when it released the role.
func (s *scene) planned(role string, from, to *process, asked time.Time, reason, by, kind, text string) move {
	s.Helper()
	released := from.await("released", role, asked)
	m := move{role: role, from: from.name, to: to.name, reason: reason, by: by, kind: kind, text: text}
	m.ended = span{asked, released.seen}
	m.freed = span{asked, released.seen}
	m.next = to.await("acquired", role, asked)
	return m
}

func stepDown(s *scene) {
	s.serve()
	leader := s.lead("old", "billing")
	next := s.standby("new", "billing")
	asked := time.Now()
	out := s.tenure("step-down", "--role", "billing")
	m := s.planned("billing", leader, next, asked, "stepped_down", requester(), "change",
		"old stepped down from billing at "+moment+", requested by "+requester())
	s.says("step-down", "output", strings.TrimSpace(out), fmt.Sprintf(".*new leads billing, term %d.*", m.next.Term))
	s.inHistory(m)
	s.inStatus(m)
	s.inIncidents(m, `\. It moved to new within `+brief+`\.`)
	s.onPages(m, "move")
	shown := s.failovers("", 1)
	s.equal("page: failovers", "failovers and moves", []int{shown.Failovers, shown.Moves, shown.Day}, "[0 1 0]")
	s.equal("page: failovers", "a median of no failover", shown.Median == nil, true)
	s.says("page: overview", "banner", plain(s.now().Now.Health.Sentence), `All roles have a leader: 3 roles, 3 nodes\.`)
	s.audited("role", "billing", "step_down", requester())
}

// audited checks that the latest audit entry about a subject is what was done.
func (s *scene) audited(kind, name, action, by string) {
	s.Helper()
	type audit struct {
		Actions []struct {
			At                                 time.Time `json:"time"`
			Kind, Name, Action, Result, Detail string
			By                                 string `json:"requested_by"`
		}
	}
	var shown audit
	s.json(&shown, "audit")
	for _, a := range shown.Actions {
		if a.Name != name {
			continue
		}
		s.equal("audit", "action", strings.Join([]string{a.Kind, a.Action, a.By, a.Result}, " "), strings.Join([]string{kind, action, by, "done"}, " "))
		var served audit
		s.page(&served, "/v1/audit")
		s.equal("/v1/audit", "the same", fmt.Sprint(served.Actions[0]), fmt.Sprint(shown.Actions[0]))
		return
	}
	s.compare("audit", "action", fmt.Sprint(shown.Actions), action+" of "+name, "contains", false)
}

func handOver(s *scene) {
	s.serve()
	leader := s.lead("giver", "billing")
	s.standby("other", "billing")
	next := s.standby("taker", "billing")
	asked := time.Now()
	s.tenure("step-down", "--role", "billing", "--to", "taker")
	m := s.planned("billing", leader, next, asked, "handed_over", requester(), "change",
		"giver handed over billing at "+moment+", requested by "+requester())
	s.inHistory(m)
	s.inStatus(m)
	s.inIncidents(m, `\. It moved to taker within `+brief+`\.`)
	s.onPages(m, "move")
	s.audited("role", "billing", "hand_over", requester())
}

func drain(s *scene) {
	s.serve()
	leader := s.lead("leaving", "billing")
	next := s.standby("staying", "billing")
	asked := time.Now()
	s.tenure("node", "drain", "leaving")
	done := span{asked, time.Now()}
	m := s.planned("billing", leader, next, asked, "stepped_down", requester(), "drain",
		"leaving began to drain at "+moment+", requested by "+requester())
	s.inStatus(m)
	s.inIncidents(m, `\. Its role billing moved to staying within `+brief+`\.`)
	s.equal("node list", "status", s.nodes("leaving")[0].Status, "draining")
	s.says("status", "verdict", s.status().Summary, `All 3 roles are led; 3 nodes are alive, 1 of them joining or draining\.`)
	var changes struct {
		Changes []struct {
			At       time.Time `json:"time"`
			NodeName string    `json:"node_name"`
			Status   string
			By       string `json:"requested_by"`
		}
	}
	s.json(&changes, "history", "--nodes", "--node", "leaving")
	s.equal("history --nodes", "change", changes.Changes[0].Status+" "+changes.Changes[0].By, "draining "+requester())
	s.at("history --nodes", "at", changes.Changes[0].At, done)
	s.eventually("the page shows the draining node", func() bool {
		for _, n := range s.now().Now.Nodes {
			if n.Name == "leaving" && n.State == "draining" {
				return true
			}
		}
		return false
	})
	s.equal("page: overview", "living", s.now().Now.Living, 3)
	s.audited("node", "leaving", "drain", requester())
	shown := s.failovers("", 1)
	s.equal("page: failovers", "a drain is a move", []int{shown.Failovers, shown.Moves}, "[0 1]")
	s.tenure("node", "undrain", "leaving")
	s.equal("node list", "status after undrain", s.nodes("leaving")[0].Status, "active")
}

// rollingRestart replaces three nodes one after another, each under its name.
func rollingRestart(s *scene) {
	s.serve()
	var all []*process
	for i := range 3 {
		name := fmt.Sprintf("api-%d", i+1)
		if i == 0 {
			all = append(all, s.lead(name, "billing"))
		} else {
			all = append(all, s.standby(name, "billing"))
		}
	}
	began := time.Now()
	for i := range all {
		_, code := all[i].stop()
		s.equal("process", "exit code of "+all[i].name, code, 0)
		all[i] = s.standby(all[i].name, "billing")
	}
	ended := time.Now()
	found := s.incidents()
	s.equal("history --incidents", "kinds", kinds(found), "[deployment]")
	s.says("history --incidents", "sentence", found[0].Sentence, `3 nodes were replaced from `+moment+` to `+moment+`: api-1, api-2 and api-3\. Their \d roles? .*`)
	s.at("history --incidents", "began", found[0].Began, span{began, ended})
	s.equal("history --incidents", "moves", len(found[0].Moves), len(s.history("billing"))-1)
	s.sameOnPage(found[0])
	s.equal("status", "verdict", s.status().Summary, "All 3 roles are led; 4 nodes are alive.")
	for _, name := range []string{"api-1", "api-2", "api-3"} {
		s.equal("node list", "nodes named "+name, len(s.nodes(name)), 1)
	}
	shown := s.failovers("", len(s.history("billing"))-1)
	s.equal("page: failovers", "failovers", shown.Failovers, 0)
	s.eventually("the page shows the nodes", func() bool { return s.now().Now.Living == 4 })
	s.equal("page: overview", "nodes", len(s.now().Now.Nodes), 4)
}

// sameName kills a node and starts another one under its name.
func sameName(s *scene) {
	s.serve()
	first := s.lead("api", "billing")
	other := s.standby("peer", "billing")
	m := s.crash("billing", first, other)
	again := s.standby("api", "billing")
	nodes := s.nodes("api")
	s.equal("node list", "nodes of the name", len(nodes), 2)
	for _, n := range nodes {
		if n.Status != "dead" {
			s.equal("node list", "a living node is not replaced", n.Replaced, false)
			s.seconds("node list", "up for", &n.Uptime, lasted{time.Since(again.await("acquire_failed", "billing", time.Time{}).seen), time.Since(again.started)}, span{again.started, time.Now()})
			continue
		}
		s.equal("node list", "the dead node is replaced", n.Replaced, true)
		up := n.Uptime
		lived := lasted{m.ended.from.Sub(first.leads("billing").seen) - refresh, m.ended.to.Sub(first.started)}
		s.seconds("node list", "up for ends at death", &up, lived, m.ended)
	}
	s.says("node list", "text", s.tenure("node", "list"), `.*api +[^ ]+ +replaced.*`)
	s.equal("status", "verdict", s.status().Summary, "All 3 roles are led; 3 nodes are alive.")
	s.equal("status", "well", s.status().Well, true)
	var now nowShown
	limit := time.Now().Add(pageLag)
	s.eventually("the page shows the new node", func() bool { // a node whose heartbeat is late is silent
		now = s.now()
		return now.Now.Living == 3 && (now.Now.Silent == 0 || time.Now().After(limit))
	})
	s.equal("page: overview", "nodes", len(now.Now.Nodes), 3)
	for _, n := range now.Now.Nodes {
		s.equal("page: nodes", "state of "+n.Name, n.State, "active")
	}
	_, figures := s.get(s.server + "/metrics")
	s.equal("metrics", "active nodes", metric(string(figures), `tenure_cluster_nodes{status="active"}`), 3)
	frame := s.top("billing")
	s.says("top", "title", part(frame, `(tenure top[^\n]*?)  as of`), `tenure top  roles 3, vacant 0  nodes \d, dead 0`)
}

// twoRoles kills the leader of one of two roles: the other one is not touched.
func twoRoles(s *scene) {
	s.serve()
	a := s.run("a", "--role", "mails", "--role", "bills", "--listen", "127.0.0.1:0", "--log-level", "info")
	a.leads("mails")
	bills := a.leads("bills")
	b := s.standby("b", "mails", "--listen", "127.0.0.1:0", "--log-level", "info")
	m := s.crash("mails", a, b)
	s.inHistory(m)
	s.eventually("the end of bills is recorded", func() bool { return s.history("bills")[0].Ended != nil })
	term := s.history("bills")[0]
	s.equal("history", "the other role", fmt.Sprint(term.NodeName, " ", term.Term, " ", term.Reason), fmt.Sprint("a ", bills.Term, " crashed"))
	s.at("history", "the other role ended", *term.Ended, m.freed)
	status := s.status()
	s.says("status", "verdict", status.Summary, `1 of 4 roles has no leader: bills for `+age+`; 1 node is dead: a for `+age+`; 2 nodes are alive\.`)
	i := s.incidents()[0]
	s.says("history --incidents", "sentence", i.Sentence, `a crashed at `+moment+`\. Of its 2 roles, 1 moved to b within `+brief+`, and 1 has no leader\.`)
	s.equal("history --incidents", "it lasts", i.Ended == nil, true)
	r := s.onPage("bills", func(r roleOnPage) bool { return r.State == "vacant" && r.Ended != nil })
	s.at("page: role", "vacant since", *r.Ended, m.freed)
	now := s.banner("banner", `a crashed at `+moment+`\. Of its 2 roles, 1 moved to b within `+brief+`, and 1 has no leader\.`)
	s.equal("page: overview", "led, vacant", []int{now.Now.Led, now.Now.Vacant}, "[3 1]")
	if now.Now.Health.Since != nil {
		s.at("page: overview", "since", *now.Now.Health.Since, m.freed)
	}
	var leaders struct {
		Leaders []struct {
			Role   string
			Leader *struct {
				NodeName string `json:"node_name"`
				Term     int64
			}
		}
	}
	s.page(&leaders, "/v1/leaders")
	for _, l := range leaders.Leaders {
		switch {
		case l.Role == "bills":
			s.equal("/v1/leaders", "leader of bills", l.Leader == nil, true)
		case l.Role == "mails" && l.Leader != nil:
			s.equal("/v1/leaders", "leader of mails", fmt.Sprint(l.Leader.NodeName, " ", l.Leader.Term), fmt.Sprint("b ", m.next.Term))
		}
	}
	_, figures := s.get(s.address(b) + "/metrics")
	for _, one := range []struct {
		name string
		true any
	}{
		{"tenure_leader_is_leader", 1},
		{"tenure_leader_term", strconv.FormatFloat(float64(m.next.Term), 'g', -1, 64)},
		{"tenure_leader_failovers_total", 1},
		{"tenure_leader_terms_total", 1},
		{"tenure_leader_losses_total", 0},
	} {
		s.equal("metrics", one.name, metric(string(figures), one.name+`{role="mails"}`), one.true)
	}
	frame := s.top("bills")
	s.says("top", "title", part(frame, `(tenure top[^\n]*?)  as of`), `tenure top  roles 4, vacant 1  nodes 3, dead 1`)
	s.says("top", "the vacant role is the first one", part(frame, `LEASE\s+(\S[^\n]*)`), `>? *bills +vacant, crashed .*`)
	s.says("top", "the dead node is the first one", part(frame, `HOST +ID\s+(\S[^\n]*)`), `a +dead.*`)
}

// longNames uses the longest names: all lists name the right role and node.
func longNames(s *scene) {
	s.serve()
	long := func(begin string) string { return begin + strings.Repeat("-x", (255-len(begin))/2) }
	role, from, to := long("settlement"), long("worker-a"), long("worker-b")
	leader := s.lead(from, role)
	next := s.standby(to, role)
	m := s.crash(role, leader, next)
	s.inHistory(m)
	s.inStatus(m)
	s.onPages(m, "failover")
	i := s.incidents()[0]
	s.says("history --incidents", "sentence", i.Sentence, from+` crashed at `+moment+`\. Its role `+role+` moved to `+to+` within `+brief+`\.`)
	s.banner("banner with shortened names", `worker-a[-x]{32}… crashed at `+moment+`\. Its role settlement[-x]{30}… moved to worker-b[-x]{32}… within `+brief+`\.`)
}
