package observer

import (
	"fmt"
	"time"
)

// guard starts a command under the leadership of a role.
func (s *scene) guard(name, role, shell string, flags ...string) *process {
	s.Helper()
	args := append([]string{"run", "--dsn", s.dsn, "--name", name, "--lease", lease.String(), "--role", role}, flags...)
	return launch(s.T, name, program("tenure"), nil, append(args, "--", "sh", "-c", shell)...)
}

// once runs commands with --once, well, late and badly.
func once(s *scene) {
	s.serve()
	var runs []span
	for range 2 {
		run := span{from: time.Now()}
		p := s.guard("cron", "nightly", "exit 0", "--once")
		s.equal("process", "exit code of a good run", p.exit(&run), 0)
		runs = append(runs, run)
	}
	last := runs[1]
	status := s.status()
	s.says("status", "verdict at rest", status.Summary, `All 2 roles are led; 1 role is at rest: nightly; 1 node is alive\.`)
	s.equal("status", "well", status.Well, true)
	for _, r := range status.Roles {
		if r.Role == "nightly" {
			s.equal("status", "state", r.State, "at rest")
			s.at("status", "completed", r.Last.Ended, last)
			s.equal("status", "reason", r.Last.Reason, "completed")
		}
	}
	r := s.onPage("nightly", func(r roleOnPage) bool { return r.State == "at rest" && r.Ended != nil && r.Ended.After(last.from) })
	s.at("page: role", "completed", *r.Ended, last)
	now := s.now().Now
	s.equal("page: overview", "led, vacant, at rest", []int{now.Led, now.Vacant, now.AtRest}, "[2 0 1]")
	s.says("page: overview", "banner at rest", plain(now.Health.Sentence), `All roles have a leader.* 1 role is at rest\.`)
	shown := s.failovers("", 0)
	s.equal("page: failovers", "runs are no failovers and no moves", []int{shown.Failovers, shown.Moves, shown.Total}, "[0 0 0]")
	s.equal("history --incidents", "kinds", kinds(s.incidents()), "[shutdown change shutdown change]")
	s.says("history --incidents", "sentence", s.latest("change").Sentence, `cron completed the work of nightly at `+moment+`\.`)
	frame := s.top("nightly")
	s.says("top", "at rest", part(frame, `(nightly[^\n]*)`), `nightly +at rest, completed.*`)

	bad := span{from: time.Now()}
	s.equal("process", "exit code of a bad run", s.guard("cron", "nightly", "exit 4", "--once").exit(&bad), 4)
	s.says("status", "verdict after a bad run", s.status().Summary, `1 of 3 roles has no leader: nightly for `+age+`; 1 node is alive\.`)
	s.says("status", "cause", s.tenure("status"), `.*cron gave up nightly at `+stamp+`: done: the command ended with exit code 4\..*`)
	r = s.onPage("nightly", func(r roleOnPage) bool { return r.State == "vacant" })
	s.at("page: role", "vacant since", *r.Ended, bad)
	s.says("history --incidents", "sentence of a bad run", s.latest("change").Sentence, `cron gave up nightly at `+moment+`: done: the command ended with exit code 4\. It has no leader\.`)

	late := span{from: time.Now()}
	s.equal("process", "exit code of a run with a limit", s.guard("cron", "nightly", "exit 0", "--once", "--next-within", "1s").exit(&late), 0)
	s.eventually("the next run is overdue", func() bool { return !s.status().Well })
	s.says("status", "overdue", s.tenure("status"), `.*nightly was completed at `+stamp+`; its next run was due by `+stamp+`\..*`)
	for _, r := range s.status().Roles {
		if r.Role == "nightly" {
			s.at("status", "due by", *r.Last.Next, span{late.from.Add(time.Second), late.to.Add(time.Second)})
		}
	}
	s.onPage("nightly", func(r roleOnPage) bool { return r.State == "vacant" && r.Reason == "completed" })
	s.equal("page: overview", "an overdue role is vacant", s.now().Now.Vacant, 1)
}

// crashLoop runs a command that fails again and again.
func crashLoop(s *scene) {
	s.serve()
	began := time.Now()
	// It campaigns again after a check interval: what is shown until then is read before.
	node := s.guard("w1", "billing", "exit 3", "--max-restarts", "1", "--check-interval", "30s")
	node.logs("leaving the role to other candidates")
	gave := span{began, time.Now()}
	const cause = "the command ended 2 times in a row, most recently with exit code 3"
	var next time.Time
	s.eventually("the status names the cause", func() bool {
		for _, r := range s.status().Roles {
			if r.Role != "billing" || r.Leader != nil || r.Last == nil || r.Last.Cause == "" {
				continue
			}
			s.equal("status", "cause", r.Last.Cause, cause)
			s.equal("status", "node and reason", r.Last.NodeName+" "+r.Last.Reason, "w1 resigned")
			s.at("status", "gave up", r.Last.Ended, gave)
			next = *r.Last.Next
			return true
		}
		return false
	})
	s.says("status", "sentence", s.tenure("status"), `.*w1 gave up billing at `+stamp+`: `+cause+`\. It campaigns again at `+stamp+`\..*`)
	s.says("history", "sentence", s.tenure("history"), `.*w1 gave up billing at `+stamp+`: `+cause+`\..*`)
	s.says("history --incidents", "sentence", s.incidents()[0].Sentence, `w1 gave up billing at `+moment+`: `+cause+`\. It has no leader\.`)
	r := s.onPage("billing", func(r roleOnPage) bool { return r.State == "vacant" })
	s.at("page: role", "vacant since", *r.Ended, gave)
	s.says("page: overview", "banner", plain(s.now().Now.Health.Sentence), `No node leads billing\..*`)
	s.eventually("the node campaigns again", func() bool { return len(s.history("billing")) > 1 })
	again := s.history("billing")[0].Began
	s.at("status", "campaigns again at", next, span{again.Add(-refresh), again})
}

// rebalance starts two workers that share roles: the second one gets half of them.
func rebalance(s *scene) {
	s.serve()
	first := s.work(worker{Name: "w1", Shared: 6})
	for i := range 6 {
		first.leads(fmt.Sprintf("shard/%d", i))
	}
	began := time.Now()
	second := s.work(worker{Name: "w2", Shared: 6})
	taken := func() (terms []event) {
		for _, e := range second.events {
			if e.Event == "acquired" {
				terms = append(terms, e)
			}
		}
		return terms
	}
	var moved []event
	second.until("three roles", func() bool { moved = taken(); return len(moved) == 3 })
	ended := span{began, time.Now()}
	s.eventually("all moves are over", func() bool { return s.status().Well })
	shown := s.failovers("", 3)
	s.equal("page: failovers", "failovers, moves, last 24 hours", []int{shown.Failovers, shown.Moves, shown.Day}, "[0 3 0]")
	s.equal("page: failovers", "no median of moves", shown.Median == nil, true)
	for _, e := range moved {
		terms := s.history(e.Role)
		s.equal("history", "move of "+e.Role, fmt.Sprint(terms[1].NodeName, " ", terms[1].Reason, " ", terms[0].NodeName, " ", terms[0].Term, " ", terms[1].By), fmt.Sprint("w1 handed_over w2 ", e.Term, " "))
	}
	for _, i := range s.incidents() {
		s.equal("history --incidents", "kind", i.Kind, "rebalance")
		s.says("history --incidents", "sentence", i.Sentence, `w1 handed over \d roles? at `+moment+` to w2\.`)
		s.at("history --incidents", "began", i.Began, ended)
	}
	s.says("page: overview", "banner", plain(s.now().Now.Health.Sentence), `All roles have a leader: 8 roles, 3 nodes\.`)
	for _, n := range s.nodes("w2") {
		s.equal("node list", "led by w2", len(n.Leads), 3)
	}
	s.eventually("the page shows what w2 leads", func() bool {
		for _, n := range s.now().Now.Nodes {
			if n.Name == "w2" {
				return n.Leads == 3
			}
		}
		return false
	})
	var leads int
	for _, n := range s.now().Now.Nodes {
		leads += n.Leads
	}
	s.equal("page: nodes", "led by all", leads, 8)
}
