package observer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/postgres"
)

type lettersShown struct {
	Letters []letterShown `json:"dead_letters"`
}

type letterShown struct {
	ID       int64
	Error    string
	Attempts int
	FailedAt time.Time `json:"failed_at"`
	Replay   bool
}

func (s *scene) letters() (shown lettersShown) {
	s.Helper()
	s.json(&shown, "processor", "dead-letters", "mails")
	return shown
}

// replay refuses events, replays them while they are refused again, and then well.
func replay(s *scene) {
	s.serve()
	refuses := filepath.Join(s.TempDir(), "refuses")
	if err := os.WriteFile(refuses, nil, 0o600); err != nil {
		s.Fatal(err)
	}
	p := s.work(worker{Name: "mailer-1", Processor: "mails", Refuses: refuses})
	db, err := postgres.New(s.dsn, postgres.Config{})
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	began := time.Now()
	events := []eventstore.NewEvent{{Type: "one", Data: 1}, {Type: "two", Data: 2}, {Type: "three", Data: 3}}
	if err := eventstore.New(db, eventstore.Config{}).Append(s.Context(), s.pool, events...); err != nil {
		s.Fatal(err)
	}
	p.await("refused", "three", began)
	s.eventually("three dead letters", func() bool { return len(s.letters().Letters) == 3 })
	ended := span{began, time.Now()}
	refused := s.letters()
	for i, l := range refused.Letters {
		s.says("processor dead-letters", "error", l.Error, `.*the receiver answered 422`)
		s.at("processor dead-letters", fmt.Sprint("failed at, event ", i+1), l.FailedAt, ended)
	}
	s.counts("refused events", 3)
	s.says("status", "verdict", s.status().Summary, `All 3 roles are led; 2 nodes are alive; 1 processor has dead letters: mails \(3\)\.`)
	s.eventually("the page shows the dead letters", func() bool { return s.lettersOnPage() == 3 })
	s.says("page: overview", "banner", plain(s.now().Now.Health.Sentence), `.*mails.*3 dead letters.*`)

	asked := time.Now()
	s.says("processor replay", "output", s.tenure("processor", "replay", "mails", "--all"), "dead letters to be replayed: 3\n")
	p.await("refused", "three", asked)
	s.eventually("the replay has ended", func() bool {
		return !slices.ContainsFunc(s.letters().Letters, func(l letterShown) bool { return l.Replay || !l.FailedAt.After(asked) })
	})
	again := s.letters()
	s.equal("processor dead-letters", "letters after a replay that failed", len(again.Letters), 3)
	for i, l := range again.Letters {
		s.equal("processor dead-letters", fmt.Sprint("attempts after the replay, event ", i+1), l.Attempts, refused.Letters[i].Attempts+1)
		s.at("processor dead-letters", fmt.Sprint("failed again at, event ", i+1), l.FailedAt, span{asked, time.Now()})
	}
	s.counts("a replay that failed", 3)

	if err := os.Remove(refuses); err != nil {
		s.Fatal(err)
	}
	asked = time.Now()
	s.tenure("processor", "replay", "mails", fmt.Sprint(again.Letters[0].ID))
	p.await("handled", "one", asked)
	s.eventually("the letter is handled", func() bool { return len(s.letters().Letters) == 2 })
	s.counts("one good replay", 2)
	s.tenure("processor", "replay", "mails", "--all")
	p.await("handled", "three", asked)
	s.eventually("all letters are handled", func() bool { return len(s.letters().Letters) == 0 })
	s.counts("all replayed", 0)
	s.says("status", "verdict after all", s.status().Summary, `All 3 roles are led; 2 nodes are alive\.`)
	s.eventually("the page shows no dead letters", func() bool { return s.lettersOnPage() == 0 })
	s.says("page: overview", "banner after all", plain(s.now().Now.Health.Sentence), `All roles have a leader: 3 roles, 2 nodes\.`)
	var audit struct {
		Actions []struct {
			By           string `json:"requested_by"`
			Name, Action string
		}
	}
	s.json(&audit, "audit", "--count", "1000")
	actions := map[string]int{}
	for _, a := range audit.Actions {
		if a.Name == "mails" {
			actions[a.Action]++
			s.equal("audit", "requester", a.By, requester())
		}
	}
	s.equal("audit", "replays", actions["replay"], 3)
	s.equal("audit", "replays that failed", actions["replay_failed"], 1)
	s.equal("audit", "other actions", len(actions), 2)
}

func (s *scene) lettersOnPage() int {
	s.Helper()
	var shown struct {
		Work struct {
			Processors []struct {
				Letters int `json:"dead_letters"`
			}
		}
	}
	s.page(&shown, "/api/now")
	if len(shown.Work.Processors) == 0 {
		return -1
	}
	return shown.Work.Processors[0].Letters
}

// counts compares the numbers of dead letters of the command, the API and the metrics.
func (s *scene) counts(when string, letters int) {
	s.Helper()
	var shown struct {
		Processors []struct {
			Letters int `json:"dead_letters"`
			Status  string
			Node    string `json:"node_name"`
		}
	}
	s.json(&shown, "processor", "list")
	s.equal("processor list", when, fmt.Sprint(shown.Processors[0].Letters, shown.Processors[0].Status, shown.Processors[0].Node), fmt.Sprint(letters, "active", "mailer-1"))
	served := shown
	served.Processors = nil
	s.page(&served, "/v1/processors")
	s.equal("/v1/processors", when, served.Processors[0].Letters, letters)
}

// schedules runs a good and a bad schedule on request.
func schedules(s *scene) {
	s.serve()
	file := filepath.Join(s.TempDir(), "tenure.toml")
	const text = `
[[cron]]
name = "good"
schedule = "30 2 1 1 *"
command = "echo well"

[[cron]]
name = "bad"
schedule = "30 2 1 1 *"
command = "echo ill; exit 7"
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	launch(s.T, "cron-1", program("tenure"), nil, "cron", "run", "--config", file, "--dsn", s.dsn, "--name", "cron-1", "--lease", lease.String())
	type runs struct {
		Runs []struct {
			Schedule, State, Error string
			Node                   string     `json:"node_name"`
			By                     string     `json:"requested_by"`
			Started                *time.Time `json:"started_at"`
			Ended                  *time.Time `json:"ended_at"`
		}
	}
	s.eventually("the schedules are loaded", func() bool {
		out, _, code := s.invoke("cron", "list")
		return code == 0 && part(out, "(bad)") != "" && part(out, "(good)") != ""
	})
	for i, name := range []string{"good", "bad", "bad", "bad"} {
		asked := span{from: time.Now()}
		s.tenure("cron", "trigger", name, "--by", "anna")
		var shown runs
		s.eventually("the run has ended", func() bool {
			shown = runs{}
			s.json(&shown, "cron", "history")
			return len(shown.Runs) == i+1 && shown.Runs[0].Ended != nil
		})
		asked.to = time.Now()
		r, state := shown.Runs[0], map[string]string{"good": "succeeded", "bad": "failed"}[name]
		s.equal("cron history", fmt.Sprint("run ", i+1), fmt.Sprint(r.Schedule, " ", r.State, " ", r.Node, " ", r.By), fmt.Sprint(name, " ", state, " cron-1 anna"))
		s.at("cron history", fmt.Sprint("started, run ", i+1), *r.Started, asked)
		s.at("cron history", fmt.Sprint("ended, run ", i+1), *r.Ended, asked)
		if name == "bad" {
			s.says("cron history", fmt.Sprint("error, run ", i+1), r.Error, `.*exit code 7.*`)
		}
	}
	s.says("status", "verdict", s.status().Summary, `All 3 roles are led; 2 nodes are alive; .*bad.*\.`)
	var page struct {
		Now  struct{ Health struct{ Sentence string } }
		Work struct {
			Schedules []struct {
				Name     string `json:"schedule"`
				Failures int
				InRow    int `json:"failed_in_row"`
			}
		}
	}
	s.eventually("the page shows the failures", func() bool {
		s.page(&page, "/api/now")
		for _, one := range page.Work.Schedules {
			if one.Name == "bad" {
				return one.Failures == 3
			}
		}
		return false
	})
	for _, one := range page.Work.Schedules {
		want := map[string]int{"good": 0, "bad": 3}[one.Name]
		s.equal("page: schedules", "failures and in a row of "+one.Name, []int{one.Failures, one.InRow}, []int{want, want})
	}
	s.says("page: overview", "banner", plain(page.Now.Health.Sentence), `.*bad.*`)
	var served struct {
		Schedules []struct {
			Schedule string
			Failures int
		}
	}
	s.page(&served, "/v1/schedules")
	for _, one := range served.Schedules {
		s.equal("/v1/schedules", "failures of "+one.Schedule, one.Failures, map[string]int{"good": 0, "bad": 3}[one.Schedule])
	}
}
