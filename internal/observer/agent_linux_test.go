package observer

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// behindAgent kills and moves the leaders behind an agent. Each of them is shown by its own
// name, with that of the agent beside it, and its metrics know its term.
func behindAgent(s *scene) {
	folder, err := os.MkdirTemp("", "agent-") // a short path: a socket has no longer one
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(folder) }) // it is in the folder of temporary files
	socket := filepath.Join(folder, "agent.sock")
	launch(s.T, "host-1", program("tenure"), nil, "agent", "--dsn", s.dsn, "--name", "host-1", "--socket", socket).logs("the agent is ready")
	s.serve()
	behind := func(name string, roles ...string) *process {
		args := []string{"run", "-o", "json", "--agent", socket, "--name", name, "--lease", lease.String(), "--listen", "127.0.0.1:0", "--log-level", "info"}
		for _, role := range roles {
			args = append(args, "--role", role)
		}
		return launch(s.T, name, program("tenure"), nil, args...)
	}
	first := behind("n1", "billing")
	began := span{first.started, first.leads("billing").seen}
	s.ledBehind("billing", "n1", began)
	mails := behind("n2", "mails")
	mails.leads("mails")
	s.ledBehind("mails", "n2", span{mails.started, time.Now()})
	next := behind("n3", "billing", "mails")
	next.await("acquire_failed", "billing", time.Time{})
	next.await("acquire_failed", "mails", time.Time{})
	s.measuredBehind("billing", began, first, next)
	s.measuredBehind("mails", span{mails.started, mails.leads("mails").seen}, mails, next)

	ended := first.kill()
	acquired := next.await("acquired", "billing", ended.from)
	s.ledBehind("billing", "n3", span{acquired.Time, acquired.seen})
	s.measuredBehind("billing", span{ended.from, acquired.seen}, next)
	s.movedBehind("billing", "n1", "n3", "crashed", `n1 crashed at `+moment+`\. Its role billing moved to n3 within `+brief+`\.`)

	asked := time.Now()
	s.tenure("step-down", "--role", "mails")
	acquired = next.await("acquired", "mails", asked)
	s.ledBehind("mails", "n3", span{acquired.Time, acquired.seen})
	s.measuredBehind("mails", span{asked, acquired.seen}, next, mails)
	s.movedBehind("mails", "n2", "n3", "stepped_down", `n2 stepped down from mails at `+moment+`, requested by `+requester()+`\. It moved to n3 within `+brief+`\.`)

	var leads []string
	for _, n := range s.nodes("host-1") {
		leads = append(leads, n.Leads...)
	}
	s.equal("node list", "roles of the agent", strings.Join(leads, " "), "billing mails")
	direct := s.standby("n4", "billing")
	next.kill()
	at := direct.await("acquired", "billing", asked)
	s.eventually("the leader without an agent", func() bool { return s.leaderOf("billing").NodeName == "n4" })
	s.equal("status", "a leader without an agent", fmt.Sprint(s.leaderOf("billing").Term, s.leaderOf("billing").Agent), fmt.Sprint(at.Term))
}

type leaderShown struct {
	NodeName string `json:"node_name"`
	Agent    string
	Term     int64
	Began    time.Time `json:"began_at"`
}

// leaderOf returns the leader of a role as the status shows it.
func (s *scene) leaderOf(role string) (found leaderShown) {
	s.Helper()
	var shown struct {
		Roles []struct{ Leader *leaderShown }
	}
	s.json(&shown, "status", "--role", role)
	if shown.Roles[0].Leader != nil {
		found = *shown.Roles[0].Leader
	}
	return found
}

// ledBehind compares what is shown about a leader behind the agent.
func (s *scene) ledBehind(role, node string, began span) {
	s.Helper()
	leader := s.leaderOf(role)
	s.equal("status", "leader of "+role, leader.NodeName+" behind "+leader.Agent, node+" behind host-1")
	s.at("status", "leads since", leader.Began, began)
	s.says("status", "row of "+role, s.tenure("status", "--role", role), `.*\n`+role+` +led +`+node+` \(host-1\) .*`)
	s.says("top", "row of "+role, part(s.top(role), `(`+role+` +\S+ +\d{13}[^\n]*)`), role+` +`+node+` .*`)
	var served struct{ Leader leaderShown }
	s.eventually("the API shows the term", func() bool {
		status, body := s.get(s.server + "/v1/leaders/" + role)
		if status == http.StatusNotFound { // the server has not heard of the term yet
			return false
		}
		served.Leader = leaderShown{}
		s.decode(body, &served)
		return served.Leader.Term == leader.Term
	})
	s.equal("/v1/leaders", "leader of "+role, served.Leader.NodeName+" behind "+served.Leader.Agent, node+" behind host-1")
	s.onPage(role, func(r roleOnPage) bool { return r.NodeName == node })
	var page struct {
		Role struct {
			Node  string `json:"node_name"`
			Agent string
		}
	}
	s.page(&page, "/api/role?name="+role)
	s.equal("page: role", "leader of "+role, page.Role.Node+" behind "+page.Role.Agent, node+" behind host-1")
}

// measuredBehind compares the metrics of processes behind the agent. The first one leads the
// role.
func (s *scene) measuredBehind(role string, began span, leader *process, others ...*process) {
	s.Helper()
	leads := `tenure_leader_is_leader{role="` + role + `"}`
	var figures string
	read := func(what, url, truth string) (during span) {
		s.eventually(what, func() bool { // the observer may have heard of a term or its end before
			during.from = time.Now()
			_, text := s.get(url)
			figures, during.to = string(text), time.Now()
			return metric(figures, leads) == truth
		})
		s.equal(what, "leads "+role, metric(figures, leads), truth)
		return during
	}
	during := read("metrics of "+leader.name, s.address(leader)+"/metrics", "1")
	number := strconv.FormatFloat(float64(s.leaderOf(role).Term), 'g', -1, 64)
	s.equal("metrics of "+leader.name, "term of "+role, metric(figures, `tenure_leader_term{role="`+role+`"}`), number)
	led, err := strconv.ParseFloat(metric(figures, `tenure_leader_tenure_seconds{role="`+role+`"}`), 64)
	if err != nil {
		s.Fatal(err)
	}
	s.seconds("metrics of "+leader.name, "time as leader of "+role, &led, between(began, during), span{began.from, during.to})
	for _, p := range others {
		read("metrics of "+p.name, s.address(p)+"/metrics", "0")
		for _, name := range []string{"tenure_leader_term", "tenure_leader_tenure_seconds"} {
			s.equal("metrics of "+p.name, name+" of "+role, metric(figures, name+`{role="`+role+`"}`), 0)
		}
	}
}

// movedBehind compares what is shown about a move between nodes behind the agent.
func (s *scene) movedBehind(role, from, to, reason, sentence string) {
	s.Helper()
	terms := s.history(role)
	s.equal("history", "nodes and reason of "+role, fmt.Sprintf("%s %s, then %s", terms[1].NodeName, terms[1].Reason, terms[0].NodeName), fmt.Sprintf("%s %s, then %s", from, reason, to))
	s.says("history --incidents", "sentence on "+role, s.incidents()[0].Sentence, sentence)
	row := s.failovers(role, 1).Rows[0]
	s.equal("page: failovers", "move of "+role, row.Previous+" to "+row.NodeName, from+" to "+to)
	if events := s.tenure("history", "--node", from); !strings.Contains(events, role) {
		s.Errorf("tenure history --node %s does not show the term of %s:\n%s", from, role, events)
	}
}
