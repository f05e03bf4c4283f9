package observer

import (
	"fmt"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// outage stops the database server for some seconds.
func outage(s *scene, server *pgtest.Server) {
	s.serve()
	leader := s.lead("a", "billing")
	s.standby("b", "billing")
	down := span{from: time.Now()}
	server.Stop(s.T, "fast")
	down.to = time.Now()
	var now nowShown
	s.eventually("the page says that the database is down", func() bool { now = s.now(); return now.Now.UnreadSince != nil })
	s.at("page: overview", "unread since", *now.Now.UnreadSince, span{down.from.Add(-6 * time.Second), down.to.Add(time.Second)})
	s.says("page: overview", "banner of the outage", plain(now.Now.Health.Sentence), `The database cannot be read since [^ ]+: 3 roles stand still if their nodes cannot reach it either\.`)
	s.equal("page: overview", "level", now.Now.Health.Level, "critical")
	_, problems, code := s.invoke("status")
	s.says("status", "without a database", fmt.Sprint(code, " ", problems), `3 tenure: .*cannot connect .*\n`)
	// The outage lasts for longer than the trust window.
	time.Sleep(time.Until(down.from.Add(lease + time.Second)))
	leader.await("lost", "billing", down.from)
	up := span{from: time.Now()}
	server.Start(s.T)
	s.eventually("the role is led again", func() bool {
		for _, r := range s.status().Roles {
			if r.Role == "billing" {
				return r.Leader != nil
			}
		}
		return false
	})
	up.to = time.Now()
	s.eventually("all roles are led", func() bool { return s.status().Well })
	var shown struct {
		Outages []struct {
			Began  time.Time `json:"began_at"`
			Ended  time.Time `json:"ended_at"`
			Lasted float64   `json:"lasted_seconds"`
			Cause  string
			Roles  []string
		}
	}
	s.json(&shown, "history", "--outages")
	s.equal("history --outages", "outages", len(shown.Outages), 1)
	o := shown.Outages[0]
	s.at("history --outages", "began", o.Began, span{down.from.Add(-refresh), down.to})
	s.at("history --outages", "ended", o.Ended, up)
	s.seconds("history --outages", "lasted", &o.Lasted, between(span{down.from.Add(-refresh), down.to}, up), span{down.from, up.to})
	s.equal("history --outages", "cause and roles", fmt.Sprint(o.Cause, " ", o.Roles), "server_changed [billing log-compactor metrics-aggregator]")
	s.says("status", "outage", s.tenure("status"), `.*The database was down or replaced for \d+ s, from `+stamp+` until `+stamp+`, `+age+` ago; 3\s+roles\s+stood\s+still\..*`)
	found := s.incidents()
	s.equal("history --incidents", "kinds", kinds(found), "[outage]")
	s.says("history --incidents", "sentence", found[0].Sentence, `No node reached the database from `+moment+` to `+moment+` \(`+brief+`\); the server lost its locks\. 3 roles stood still for up to `+brief+`\.`)
	s.long("history --incidents", "duration in the sentence", s.duration(part(found[0].Sentence, `\(`+brief+`\)`)), rounded(between(span{down.from.Add(-refresh), down.to}, up)), span{down.from, up.to})
	var page failoversShown
	limit := time.Now().Add(pageLag)
	s.eventually("the page lists the outage", func() bool {
		page = s.failovers("", 1)
		return page.Outages == 1 && (page.Failovers == 3 || time.Now().After(limit))
	})
	s.sameOnPage(found[0])
	s.equal("page: failovers", "failovers, moves, outages", []int{page.Failovers, page.Moves, page.Outages}, "[3 0 1]") // each role that stood still has a new leader
	for _, row := range page.Rows {
		if row.Kind == "outage" {
			s.seconds("page: failovers", "outage", row.Without, between(span{down.from.Add(-refresh), down.to}, up), span{down.from, up.to})
			s.equal("page: failovers", "roles of the outage", row.Roles, 3)
		}
	}
	s.equal("page: overview", "led, vacant", []int{s.now().Now.Led, s.now().Now.Vacant}, "[3 0]")
	terms := s.history("billing")
	s.equal("history", "reason", terms[1].Reason, "server_changed")
	s.equal("history", "vacancy after a server change is unknown", terms[0].Vacant == nil, true)
	s.seconds("page: failovers", "billing without a leader", withoutOf(&s.failovers("billing", 1).Rows[0].gapShown), between(span{down.from.Add(-refresh), down.to}, up), span{down.from, up.to})
	var figures string
	s.eventually("the metrics have the outage", func() bool {
		_, text := s.get(s.server + "/metrics")
		figures = string(text)
		return !strings.Contains(figures, "tenure_cluster_outages_total 0\n")
	})
	s.equal("metrics", "outages", metric(figures, "tenure_cluster_outages_total"), 1)
	s.equal("metrics", "roles of the outage", metric(figures, "tenure_cluster_outage_roles"), 3)
	s.equal("metrics", "seconds of the outage", metric(figures, "tenure_cluster_outage_seconds"), o.Lasted)
}

// stamp is the pattern of a time in the texts of commands, which have no fixed precision.
const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`
