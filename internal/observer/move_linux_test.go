package observer

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// move is a change of leader as it happened.
type move struct {
	role, from, to string
	ended          span   // when the old leader could last act
	freed          span   // when its lock was free
	next           event  // of the new leader
	reason, by     string // of the end
	kind           string // of the incident
	text           string // the pattern of its sentence up to what moved
}

// began is when the next leader began to lead, which its process reports afterwards.
func (m move) began() span { return span{m.next.Time, m.next.seen} }

// during is the whole time that the observer measured.
func (m move) during() span { return span{m.ended.from, m.next.seen} }

// refresh is the time between two heartbeats, which precedes the end of a silent leader.
const refresh = lease / 3

// without is how long no process led.
func (m move) without() lasted { return between(m.ended, m.began()) }

// vacant is how long the lock was free.
func (m move) vacant() lasted { return between(m.freed, m.began()) }

// silent is how long there was no sign of life, of which the last one is up to a refresh
// interval old when a node dies.
func (m move) silent() lasted {
	l := m.without()
	if m.reason == "crashed" || m.reason == "lease_expired" {
		l.greatest += refresh
	}
	return l
}

// inHistory compares what the history says about a move.
func (s *scene) inHistory(m move) {
	s.Helper()
	terms := s.history(m.role)
	next, before := terms[0], terms[1]
	for i := range terms[:len(terms)-1] {
		if terms[i].Term == m.next.Term {
			next, before = terms[i], terms[i+1]
		}
	}
	s.equal("history", "nodes and reason", fmt.Sprintf("%s %s, then %s", before.NodeName, before.Reason, next.NodeName), fmt.Sprintf("%s %s, then %s", m.from, m.reason, m.to))
	s.equal("history", "requester", before.By, m.by)
	s.at("history", "began", next.Began, m.began())
	if before.Ended == nil {
		s.compare("history", "ended", "unknown", clock(m.freed.from), "known", false)
		return
	}
	s.at("history", "ended", *before.Ended, m.freed)
	s.seconds("history", "vacant", next.Vacant, m.vacant(), m.during())
	s.seconds("history", "silent", next.Silent, m.silent(), m.during())
}

// inStatus compares what the status says about the leader after a move.
func (s *scene) inStatus(m move) {
	s.Helper()
	for _, r := range s.status().Roles {
		if r.Role != m.role {
			continue
		}
		if r.Leader == nil {
			s.compare("status", "leader of "+m.role, r.State, "led: "+m.to, "equal", false)
			return
		}
		s.equal("status", "leader of "+m.role, fmt.Sprint(r.State, " ", r.Leader.NodeName, " ", r.Leader.Term), fmt.Sprint("led ", m.to, " ", m.next.Term))
		s.at("status", "leads since", r.Leader.AcquiredAt, m.began())
	}
}

// marks are around names and times in the sentences of the page.
var marks = strings.NewReplacer("\u2068", "", "\u2069", "", "\x01", "", "\x02", "")

var fraction = regexp.MustCompile(`(:\d\d)\.\d+Z`)

// plain is a sentence of the page as the commands print it.
func plain(sentence string) string {
	return fraction.ReplaceAllString(marks.Replace(sentence), "${1}Z")
}

// inIncidents compares the latest incident of a kind, with what happened and with the page.
func (s *scene) inIncidents(m move, moved string) {
	s.Helper()
	for _, i := range s.incidents() {
		if i.Kind != m.kind {
			continue
		}
		s.says("history --incidents", "sentence", i.Sentence, m.text+moved)
		s.equal("history --incidents", "requester", i.By, m.by)
		began := m.freed
		if m.kind == "silence" {
			began = span{m.ended.from.Add(-refresh), m.ended.to}
		}
		s.at("history --incidents", "began", i.Began, began)
		if at, err := time.Parse(time.RFC3339, part(i.Sentence, "("+moment+")")); err == nil {
			s.at("history --incidents", "time in the sentence", at, span{began.from.Truncate(time.Second), began.to})
		}
		if i.Ended == nil {
			s.compare("history --incidents", "ended", "it lasts", clock(m.next.Time), "known", false)
		} else {
			s.at("history --incidents", "ended", *i.Ended, m.began())
		}
		if took := part(i.Sentence, "(?:within|after(?: at most)?) "+brief); took != "" {
			s.long("history --incidents", "duration in the sentence", s.duration(took), rounded(m.silentIfSilence()), m.during())
		}
		if s.server != "" {
			s.sameOnPage(i)
		}
		return
	}
	s.compare("history --incidents", "kind", strings.Join(kinds(s.incidents()), " "), m.kind, "contains", false)
}

func (m move) silentIfSilence() lasted {
	if m.kind == "silence" {
		return m.silent()
	}
	return m.vacant()
}

// rounded allows for a duration that is rounded to a tenth of a second.
func rounded(l lasted) lasted { return l.within(50 * time.Millisecond) }

// pageLag is how long the page may need to follow a record.
const pageLag = 10 * time.Second

// sameOnPage waits until the page has the same sentence for an incident.
func (s *scene) sameOnPage(i incidentShown) {
	s.Helper()
	var shown string
	limit := time.Now().Add(pageLag)
	s.eventually("the page shows the incident", func() bool {
		for _, found := range s.now().Incidents {
			if found.Kind == i.Kind && found.Began.Sub(i.Began).Abs() < time.Millisecond && (found.Ended == nil) == (i.Ended == nil) {
				shown = plain(found.Sentence)
				return shown == i.Sentence || time.Now().After(limit)
			}
		}
		return false
	})
	s.equal("page: incidents", "sentence", shown, i.Sentence)
}

// banner compares the banner, in which the page describes an incident when it has grouped the
// records that it has read, and returns the overview.
func (s *scene) banner(what, pattern string) (now nowShown) {
	s.Helper()
	limit, whole := time.Now().Add(pageLag), regexp.MustCompile("^(?s:"+pattern+")$")
	s.eventually("the page has followed", func() bool {
		now = s.now()
		return whole.MatchString(plain(now.Now.Health.Sentence+now.Now.Health.Also)) || time.Now().After(limit)
	})
	s.says("page: overview", what, plain(now.Now.Health.Sentence+now.Now.Health.Also), pattern)
	return now
}

// onPages compares what the page shows about a move: the role and the change of leader.
func (s *scene) onPages(m move, kind string) {
	s.Helper()
	r := s.onPage(m.role, func(r roleOnPage) bool { return r.NodeName == m.to && r.State == "led" && r.Previous == m.from })
	s.at("page: role", "leads since", r.Began, m.began())
	truth := m.silentIfSilence()
	if m.reason == "lease_expired" {
		truth = m.silent()
	}
	s.seconds("page: role", "without a leader", r.Without, truth, m.during())
	shown := s.failovers(m.role, 1)
	for _, row := range shown.Rows {
		if row.NodeName == m.to && row.Previous == m.from {
			s.equal("page: failovers", "kind and reason", row.Kind+" "+row.Reason, kind+" "+m.reason)
			s.seconds("page: failovers", "without a leader", row.Without, truth, m.during())
			return
		}
	}
	s.compare("page: failovers", "row", fmt.Sprint(len(shown.Rows), " others"), m.from+" to "+m.to, "equal", false)
}

// fromPID watches a server session from outside, in pg_stat_activity, until it is gone.
func (s *scene) fromPID(pid int32) (gone func() span) {
	found := make(chan span, 1)
	go func() { // exits when the session is gone, or with the test
		last := span{from: time.Now()}
		for s.Context().Err() == nil {
			asked := time.Now()
			var lives bool
			err := s.pool.QueryRow(s.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid).Scan(&lives)
			if err == nil && !lives {
				found <- span{last.from, time.Now()}
				return
			}
			last.from = asked
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() span {
		s.Helper()
		select {
		case at := <-found:
			return at
		case <-time.After(patience):
			s.Fatalf("the session %d does not end", pid)
			return span{}
		}
	}
}

// session returns the server session that holds the lock of a role.
func (s *scene) session(role string) int32 {
	s.Helper()
	for _, r := range s.status().Roles {
		if r.Role == role && len(r.Sessions) == 1 {
			return r.Sessions[0].PID
		}
	}
	s.Fatalf("no session holds %s", role)
	return 0
}
