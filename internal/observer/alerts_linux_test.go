package observer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// message is what a webhook receives.
type message struct {
	Title    string
	Incident string
	Alerts   []struct {
		Status, Name, Severity string
		Since                  time.Time
		Started                time.Time  `json:"started_at"`
		Ended                  *time.Time `json:"ended_at"`
	}
	seen time.Time
}

// receiver is a webhook.
type receiver struct {
	mu       sync.Mutex
	messages []message
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	m := message{seen: time.Now()}
	if json.NewDecoder(request.Body).Decode(&m) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, m)
}

func (r *receiver) all() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message{}, r.messages...)
}

const rules = `
[cluster]
name = "shop"

[[alerts]]
name = "no_leader"
condition = "sum(tenure_leader_is_leader{role='billing'}) == 0"
severity = "critical"
annotations = { summary = "no leader for billing" }
notify = ["hook"]

[alerts.notifications.hook]
type = "webhook"
url = "URL"
secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
`

// alerts lets an alert fire, silences it, ends the silence, and ends the alert.
func alerts(s *scene) {
	hook := &receiver{}
	web := httptest.NewServer(hook)
	defer web.Close()
	file := filepath.Join(s.TempDir(), "tenure.toml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(rules, "URL", web.URL)), 0o600); err != nil {
		s.Fatal(err)
	}
	leader := s.lead("a", "billing", "--listen", "127.0.0.1:0")
	s.serve("--config", file)
	s.eventually("the rule has been evaluated", func() bool {
		for _, a := range s.now().Alerts {
			return a.State == "inactive"
		}
		return false
	})
	s.eventually("the leader's samples are there", func() bool {
		_, figures := s.get(s.server + "/metrics/cluster")
		return strings.Contains(string(figures), `tenure_leader_is_leader{role="billing"} 1`)
	})
	ended := leader.kill()
	s.eventually("a message", func() bool { return len(hook.all()) == 1 })
	m := hook.all()[0]
	fired := span{ended.from, m.seen}
	s.equal("message", "alert", fmt.Sprint(m.Alerts[0].Status, " ", m.Alerts[0].Name, " ", m.Alerts[0].Severity), "firing no_leader critical")
	s.says("message", "title", m.Title, `CRITICAL shop: no leader for billing(?: for \d+ s)? \(since `+moment+`\)`)
	length := time.Second / 2 // a title has no length of less than a second
	if text := part(m.Title, `for (\d+ s) \(`); text != "" {
		length = s.duration(text)
	}
	s.long("message", "duration in the title", length, between(ended, span{m.Alerts[0].Started, m.seen}).within(time.Second/2), fired)
	s.at("message", "since", m.Alerts[0].Since, ended)
	s.at("message", "time in the title", s.moment(part(m.Title, `since (`+moment+`)`)), span{ended.from.Truncate(time.Second), ended.to})
	s.at("message", "began to fire", m.Alerts[0].Started, fired)
	s.says("message", "incident", m.Incident, `a crashed at `+moment+`\. Its role billing has no leader\.`)
	var now nowShown
	s.eventually("the page shows the alert", func() bool { now = s.now(); return now.Now.Firing == 1 })
	s.equal("page: overview", "firing, silenced", []int{now.Now.Firing, now.Now.Silenced}, "[1 0]")
	s.at("page: alerts", "since", now.Alerts[0].Since, ended)
	s.banner("banner", `a crashed at `+moment+`\. Its role billing has no leader\. 1 alert fires\.`)
	s.says("status", "verdict", s.status().Summary, `1 of 3 roles has no leader: billing for `+age+`; 1 node is dead: a for `+age+`; 1 node is alive; .*no_leader.*\.`)

	s.tenureServer("alerts", "silence", "no_leader", "--for", "1h", "--comment", "maintenance", "--by", "anna")
	s.eventually("the page shows the silence", func() bool { now = s.now(); return now.Now.Silenced == 1 })
	s.equal("page: overview", "firing, silenced", []int{now.Now.Firing, now.Now.Silenced}, "[0 1]")
	s.equal("page: alerts", "silenced by", now.Alerts[0].SilencedBy, "anna")
	s.banner("banner of a silenced alert", `a crashed at `+moment+`\. Its role billing has no leader\.`)
	s.says("status", "verdict of a silenced alert", s.status().Summary, `1 of 3 roles has no leader: billing for `+age+`; 1 node is dead: a for `+age+`; 1 node is alive\.`)
	s.says("alerts list", "text", s.tenureServer("alerts", "list"), `.*no_leader +firing.*silenced.*anna.*`)
	var silences struct {
		Silences []struct {
			Number int64
			Alert  string
			By     string `json:"created_by"`
			Ended  string `json:"ended_by"`
		}
	}
	s.decode([]byte(s.tenureServer("alerts", "silences", "-o", "json")), &silences)
	s.equal("alerts silences", "silence", fmt.Sprint(silences.Silences[0].Alert, " ", silences.Silences[0].By), "no_leader anna")
	s.tenureServer("alerts", "unsilence", fmt.Sprint(silences.Silences[0].Number), "--by", "bob")
	s.eventually("the page shows the end of the silence", func() bool { now = s.now(); return now.Now.Silenced == 0 })
	s.equal("page: overview", "firing, silenced", []int{now.Now.Firing, now.Now.Silenced}, "[1 0]")

	next := s.lead("b", "billing", "--listen", "127.0.0.1:0").leads("billing")
	s.eventually("a message of the end", func() bool {
		all := hook.all()
		return all[len(all)-1].Alerts[0].Status == "resolved"
	})
	all := hook.all()
	m = all[len(all)-1]
	s.equal("message", "messages in all", len(all), 2)
	s.at("message", "ended", *m.Alerts[0].Ended, span{next.Time, next.seen})
	s.at("message", "the end has the same begin", m.Alerts[0].Since, ended)
	s.says("message", "title of the end", m.Title, `OVER shop: no leader for billing after \d+ s`)
	s.long("message", "duration in the title of the end", s.duration(part(m.Title, `after (\d+ s)`)), between(ended, span{next.Time, next.seen}).within(time.Second/2), span{ended.from, next.seen})
	s.says("message", "incident of the end", m.Incident, `a crashed at `+moment+`\. Its role billing moved to b within `+brief+`\.`)
	var past struct {
		Alerts []struct {
			Name  string
			Fired time.Time  `json:"fired_at"`
			Ended *time.Time `json:"ended_at"`
		}
	}
	s.decode([]byte(s.tenureServer("alerts", "history", "-o", "json")), &past)
	s.equal("alerts history", "alerts", len(past.Alerts), 1)
	s.at("alerts history", "fired", past.Alerts[0].Fired, fired)
	s.at("alerts history", "ended", *past.Alerts[0].Ended, span{next.Time, m.seen})
	s.eventually("the page shows no alert", func() bool { now = s.now(); return now.Now.Firing == 0 })
	s.equal("page: alerts", "state", now.Alerts[0].State, "inactive")
}

// moment reads a time from a message; the zero time is in no span.
func (s *scene) moment(text string) time.Time {
	s.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.Error(err)
	}
	return at
}
