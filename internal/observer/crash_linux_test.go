package observer

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// crash kills the leader of a role with SIGKILL and returns what happened. The role has no leader
// from when the server has freed the locks of the process, which no node can know better.
func (s *scene) crash(role string, leader, next *process) move {
	s.Helper()
	gone := s.fromPID(s.session(role))
	ended := leader.kill()
	m := move{role: role, from: leader.name, to: next.name, ended: ended, reason: "crashed", kind: "crash"}
	m.next = next.await("acquired", role, ended.from)
	m.freed = gone().since(ended.from)
	m.text = fmt.Sprintf("%s crashed at %s", leader.name, moment)
	return m
}

// since leaves out what is before a time.
func (s span) since(at time.Time) span {
	if at.After(s.from) {
		s.from = at
	}
	return s
}

// ranked returns the case at the nearest rank of durations that are known within bounds.
func ranked(all []lasted, percent int) lasted {
	var least, greatest []time.Duration
	for _, l := range all {
		least, greatest = append(least, l.least), append(greatest, l.greatest)
	}
	slices.Sort(least)
	slices.Sort(greatest)
	rank := max(1, (percent*len(all)+99)/100) - 1
	return lasted{least[rank], greatest[rank]}
}

func withoutOf(g *gapShown) *float64 {
	if g == nil {
		return nil
	}
	return g.Without
}

func fiveFailovers(s *scene) {
	s.serve()
	leader := s.lead("n0", "billing")
	began := time.Now()
	var moves []move
	var all []lasted
	for i := range 5 {
		next := s.standby(fmt.Sprintf("n%d", i+1), "billing")
		m := s.crash("billing", leader, next)
		moves, all, leader = append(moves, m), append(all, m.vacant()), next
		s.inHistory(m)
	}
	during, last := span{began, time.Now()}, moves[4]
	s.inStatus(last)
	s.inIncidents(last, `\. Its role billing moved to n5 within `+brief+`\.`)
	s.equal("history --incidents", "kinds", kinds(s.incidents()), "[crash crash crash crash crash]")
	shown := s.failovers("billing", 5)
	s.equal("page: failovers", "failovers, moves, outages", []int{shown.Failovers, shown.Moves, shown.Outages}, "[5 0 0]")
	s.equal("page: failovers", "in the last 24 hours", shown.Day, 5)
	s.equal("page: failovers", "points", len(shown.Points), 5)
	s.seconds("page: failovers", "median", withoutOf(shown.Median), ranked(all, 50), during)
	s.seconds("page: failovers", "longest", withoutOf(shown.Max), ranked(all, 100), during)
	s.equal("page: failovers", "95 % and 99 % of 5 cases", shown.P95 == nil && shown.P99 == nil, true)
	s.onPages(last, "failover")
	now := s.now().Now
	s.equal("page: overview", "roles, led, vacant, living", []int{now.Roles, now.Led, now.Vacant, now.Living}, "[3 3 0 2]")
	s.says("page: overview", "banner", plain(now.Health.Sentence), `n4 crashed at `+moment+`\. Its role billing moved to n5 within `+brief+`\.`)
	var dead []string
	for i, n := range now.Nodes {
		if n.State == "dead" {
			s.equal("page: nodes", "place of a dead node", i < 5, true)
			dead = append(dead, n.Name)
		}
	}
	slices.Sort(dead)
	s.equal("page: nodes", "dead", dead, "[n0 n1 n2 n3 n4]")
	s.says("status", "verdict", s.status().Summary, `All 3 roles are led; 5 nodes are dead: n4 for `+age+`, n3 for `+age+`, n2 for `+age+`, and 2 more; 2 nodes are alive\.`)
}

// manyFailovers kills nodes that lead five roles each, seven times. The last time no standby is
// there, and one of the roles has no leader for longer than all others.
func manyFailovers(s *scene) {
	s.serve()
	var roles, flags []string
	for i := range 5 {
		roles = append(roles, fmt.Sprintf("job-%d", i))
		flags = append(flags, "--role", roles[i])
	}
	start := func(n int) *process {
		of := flags
		if n == 7 {
			of = flags[2:] // without the first role
		}
		p := s.run(fmt.Sprintf("w%d", n), of...)
		if n > 0 && n < 7 {
			for _, role := range roles {
				p.await("acquire_failed", role, time.Time{})
			}
			s.watching(p.name)
		}
		return p
	}
	leader := start(0)
	for _, role := range roles {
		leader.leads(role)
	}
	began := time.Now()
	var all []lasted
	for i := range 7 {
		var next *process
		if i < 6 {
			next = start(i + 1)
		}
		gone := s.fromPID(s.session(roles[0]))
		ended := leader.kill()
		if next == nil {
			s.eventually("the death is recorded", func() bool { return s.history(roles[0])[0].Ended != nil })
			next = start(7)
		}
		freed := gone().since(ended.from)
		for n, role := range roles {
			by := next
			if n == 0 && i == 6 {
				time.Sleep(time.Second) // the role has no candidate
				by = s.run("w8", flags[:2]...)
			}
			at := by.await("acquired", role, ended.from)
			all = append(all, between(freed, span{at.Time, at.seen}))
		}
		leader = next
	}
	during := span{began, time.Now()}
	shown := s.failovers("", 35)
	s.equal("page: failovers", "failovers, moves, outages", []int{shown.Failovers, shown.Moves, shown.Outages}, "[35 0 0]")
	s.equal("page: failovers", "in the last 24 hours", shown.Day, 35)
	for _, q := range []struct {
		name    string
		shown   *gapShown
		percent int
	}{{"median", shown.Median, 50}, {"95 %", shown.P95, 95}, {"99 %", shown.P99, 99}, {"longest", shown.Max, 100}} {
		s.seconds("page: failovers", q.name, withoutOf(q.shown), ranked(all, q.percent), during)
	}
	if s.Failed() {
		s.Log(s.tenure("history"))
		s.Log(s.tenure("history", "--incidents"))
	}
	s.equal("page: failovers", "99 % is the longest of 35", *shown.P99.Without == *shown.Max.Without, true)
	var crashes int
	for _, kind := range kinds(s.incidents()) {
		if kind == "crash" {
			crashes++
		}
	}
	s.equal("history --incidents", "crashes", crashes, 7)
	s.equal("page: failovers", "role page: failovers", s.failovers("job-0", 7).Failovers, 7)
	status := s.status()
	var led int
	for _, r := range status.Roles {
		if r.Leader != nil && r.Leader.NodeName == "w7" {
			led++
		}
	}
	s.equal("status", "led by w7", led, 4)
}

func freeze(s *scene) {
	s.serve()
	leader := s.lead("cold", "billing")
	next := s.standby("warm", "billing")
	gone := s.fromPID(s.session("billing"))
	ended := span{from: time.Now()}
	leader.signal(syscall.SIGSTOP)
	ended.to = time.Now()
	var now nowShown
	s.eventually("the page shows the silence, which ends with the lease", func() bool {
		now = s.now()
		return now.Now.Silent == 1 && s.onPage("billing", func(roleOnPage) bool { return true }).State == "silent"
	})
	s.equal("page: overview", "silent, vacant, led", []int{now.Now.Silent, now.Now.Vacant, now.Now.Led}, "[1 0 2]")
	s.says("page: overview", "banner", plain(now.Now.Health.Sentence), `cold is silent: 1 role is still led, until the lease ends\.`)
	m := move{role: "billing", from: "cold", to: "warm", ended: ended, reason: "lease_expired", kind: "silence", text: "cold fell silent at " + moment}
	m.next = next.await("acquired", "billing", ended.from)
	m.freed = gone()
	s.inHistory(m)
	s.inStatus(m)
	s.inIncidents(m, `\. Its role billing moved to warm after `+brief+` without a sign of life; the lock was free for `+brief+`\.`)
	s.onPages(m, "failover")
	shown := s.failovers("billing", 1)
	s.seconds("page: failovers", "median after a freeze", withoutOf(shown.Median), m.silent(), m.during())
	leader.signal(syscall.SIGCONT)
	leader.await("lost", "billing", ended.from)
	leader.await("acquire_failed", "billing", m.next.seen)
	s.equal("status", "well after the return", s.status().Summary, "All 3 roles are led; 3 nodes are alive.")
	s.equal("history --incidents", "kinds", kinds(s.incidents()), "[silence]")
	s.eventually("the page shows the node as active", func() bool { return s.now().Now.Living == 3 })
	s.equal("page: overview", "living, vacant", []int{s.now().Now.Living, s.now().Now.Vacant}, "[3 0]")
}

// trustEnded blocks the heartbeats of a leader, which closes its session itself: its process
// lives all the time.
func trustEnded(s *scene) {
	s.serve()
	leader := s.lead("slow", "billing")
	next := s.standby("quick", "billing")
	gone := s.fromPID(s.session("billing"))
	tx, err := s.pool.Begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if _, err := tx.Exec(s.Context(), "SELECT FROM tenure_nodes WHERE name = 'slow' FOR UPDATE"); err != nil {
		s.Fatal(err)
	}
	blocked := time.Now()
	lost := leader.await("lost", "billing", blocked)
	m := move{role: "billing", from: "slow", to: "quick", ended: span{lost.Time, lost.seen}, reason: "lease_expired", kind: "silence", text: "slow fell silent at " + moment}
	m.next = next.await("acquired", "billing", blocked)
	m.freed = gone()
	if err := tx.Rollback(s.Context()); err != nil {
		s.Fatal(err)
	}
	leader.await("acquire_failed", "billing", m.next.seen)
	s.eventually("the node that returned has recorded why it closed its session", func() bool { return s.history("billing")[1].Reason != "crashed" })
	// The last acknowledged heartbeat was up to a refresh interval before the block.
	m.ended = span{blocked.Add(-refresh), blocked}
	s.inIncidents(m, `\. Its role billing moved to quick after `+brief+` without a sign of life; the lock was free for `+brief+`\.`)
	terms := s.history("billing")
	s.equal("history", "reason of a trust window that ended", terms[1].Reason, "lease_expired")
	s.seconds("history", "vacant", terms[0].Vacant, m.vacant(), m.during())
	s.equal("history --incidents", "no crash of a process that lives", kinds(s.incidents()), "[silence]")
	s.says("page: overview", "banner", plain(s.now().Now.Health.Sentence), `slow fell silent at `+moment+`\..*`)
	s.onPage("billing", func(r roleOnPage) bool { return r.Without != nil && *r.Without > 1 })
	shown := s.failovers("billing", 1).Rows[0]
	s.equal("page: failovers", "reason", shown.Reason, "lease_expired")
	s.seconds("page: failovers", "without a leader", shown.Without, m.silent(), m.during())
	s.equal("status", "verdict", s.status().Summary, "All 3 roles are led; 3 nodes are alive.")
}

// deathUnobserved kills the only node; the next one comes later.
func deathUnobserved(s *scene) {
	leader := s.lead("alone", "billing")
	ended := leader.kill()
	next := s.lead("after", "billing")
	m := move{role: "billing", from: "alone", to: "after", ended: ended, freed: ended, next: next.leads("billing"), reason: "crashed", kind: "crash"}
	terms := s.history("billing")
	s.equal("history", "reason", terms[1].Reason, "crashed")
	s.equal("history", "vacancy that no node observed is unknown", terms[0].Vacant == nil, true)
	s.seconds("history", "silent", terms[0].Silent, m.silent(), m.during())
	i := s.incidents()[0]
	s.says("history --incidents", "sentence", i.Sentence, `alone crashed before `+moment+`; no node observed it\. Its role billing moved to after after at most `+brief+`\.`)
	s.long("history --incidents", "at most", s.duration(part(i.Sentence, "at most "+brief)), rounded(m.silent()), m.during())
	s.seconds("history --incidents", "lasted", &i.Lasted, m.silent(), m.during())
	s.serve()
	without := withoutOf(s.failovers("billing", 1).Max)
	s.seconds("page: failovers", "longest", without, m.silent(), m.during())
	s.equal("page: failovers", "longest and the duration of its incident", *without, i.Lasted)
}

// settle kills a leader; the next term begins after an extra wait.
func settle(s *scene) {
	const wait = 1500 * time.Millisecond
	leader := s.lead("first", "billing", "--settle", wait.String())
	next := s.standby("second", "billing", "--settle", wait.String())
	m := s.crash("billing", leader, next)
	s.equal("observer", "the wait took place", m.without().greatest >= wait, true)
	s.inHistory(m)
	s.inStatus(m)
	s.inIncidents(m, `\. Its role billing moved to second within `+brief+`\.`)
}
