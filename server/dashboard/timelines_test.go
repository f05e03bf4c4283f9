package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/exactly-one/tenure/history"
)

// 100 viewers who open every page at the same time, each on a different role,
// cause one read per role and no more, then and later.
func TestManyViewersReadEachRoleOnce(t *testing.T) {
	t.Parallel()
	const viewers = 100
	w := newWorld(t, Config{Alerts: func(context.Context) ([]Alert, error) { return nil, nil }})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	w.exec(`INSERT INTO {terms} (role, term, lock_key, node_id, node_name, incarnation, lease_ms, acquired_at)
		SELECT 'role-' || i, 1, 'role-' || i, node_id, node_name, incarnation, lease_ms, acquired_at FROM {terms}, generate_series(1, $1) i`, viewers)
	w.board.notify()
	w.await("all roles are shown", func() bool { return w.board.snapshot.now().Roles == viewers+1 })
	node := get[list[nodeRecord]](w, "/api/nodes").Rows[0].ID.String()
	open := func() int64 {
		before := w.statements.Load()
		var group sync.WaitGroup
		for i := range viewers {
			group.Go(func() {
				role := fmt.Sprintf("role-%d", i+1)
				for _, page := range []string{
					"session", "now", "roles?limit=100", "events?limit=30", "failovers?limit=1", "role?name=" + role, "timeline?role=" + role, "terms?role=" + role,
					"nodes", "events?kind=node", "events", "failovers", "node?id=" + node, "incidents", "lanes", "audit",
				} {
					answer := httptest.NewRecorder()
					w.board.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/api/"+page, http.NoBody))
					if answer.Code != http.StatusOK {
						t.Errorf("%s: %d %s", page, answer.Code, answer.Body)
					}
				}
			})
		}
		group.Wait()
		return w.statements.Load() - before
	}
	began := time.Now()
	first, again := open(), open()
	// The watch sends seven statements per read, and reads at most ten times in the first
	// seconds after a notification.
	own := int64(70 + 7*time.Since(began)/time.Second)
	t.Logf("%d statements for %d viewers, %d when they come again; the watch may have asked %d", first, viewers, again, own)
	if first > 2*viewers+own || again > own {
		t.Errorf("%d statements, then %d; at most %d and %d", first, again, 2*viewers+own, own)
	}
}

// A history that cannot be read is not read for every viewer, and the read does
// not end with the viewer that caused it.
func TestTimelineRetriesAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	lines := w.board.timelines

	lines.turn <- struct{}{} // another request reads
	gone, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _, _ = lines.of(gone, "scheduler") })
	w.await("the first one waits", func() bool {
		lines.mu.Lock()
		defer lines.mu.Unlock()
		return lines.loaded["scheduler"] != nil
	})
	var err error
	group.Go(func() { _, err = lines.of(t.Context(), "scheduler") })
	leave()
	<-lines.turn
	group.Wait()
	if err != nil {
		t.Errorf("with the first one gone: %v", err)
	}

	broken := newTimelines(lines.backend)
	line := newTimeline()
	line.fill(nil, errors.New("no"))
	broken.loaded["scheduler"] = line
	reads := w.timelineReads.Load()
	for range 100 {
		if _, err := broken.of(t.Context(), "scheduler"); err == nil {
			t.Fatal("it was read again immediately")
		}
	}
	if again := w.timelineReads.Load() - reads; again != 0 {
		t.Errorf("the history was read %d times", again)
	}
	// Set by hand: the rest after a failure is 3 s.
	line.failed = time.Now().Add(-timelineRest)
	if _, err := broken.of(t.Context(), "scheduler"); err != nil {
		t.Errorf("after a while: %v", err)
	}
	if again := w.timelineReads.Load() - reads; again != 1 {
		t.Errorf("after a while the history was read %d times", again)
	}
}

// The memory for timelines is bounded by the number of terms, not only by the
// number of roles, and stays bounded.
func TestTimelinesAreBounded(t *testing.T) {
	t.Parallel()
	lines := newTimelines(nil)
	for i := range 10 {
		line := newTimeline()
		line.fill(nil, nil)
		line.spans, line.touched = make([]span, maxTimelineTerms), uint64(i)
		lines.loaded[fmt.Sprint(i)] = line
	}
	lines.makeRoom()
	if n := len(lines.loaded); n != maxAllTerms/maxTimelineTerms || lines.loaded["9"] == nil || lines.loaded["0"] != nil {
		t.Errorf("%d are kept", n)
	}
	line := lines.loaded["9"]
	for i := range maxTimelineTerms / 2 {
		line.follow(snapshotTerm(int64(maxTimelineTerms+i+1), 1, time.Now()))
	}
	if size := line.size(); size > maxTimelineTerms*5/4 {
		t.Errorf("one has %d terms", size)
	}
	for i := range maxTimelines + 10 {
		lines.loaded[fmt.Sprint("small ", i)] = newTimeline()
	}
	lines.makeRoom()
	if n := len(lines.loaded); n > maxTimelines {
		t.Errorf("%d are kept", n)
	}
}

// pastOfMany is a history in which several terms began at the same time.
type pastOfMany struct {
	terms []history.Term // newest first
	most  int            // read at the same time
}

func (p *pastOfMany) History(_ context.Context, query history.Query) (part []history.Term, _ error) {
	for _, t := range p.terms {
		if len(part) < query.Limit && (query.Until.IsZero() || !t.Began.After(query.Until)) {
			part = append(part, t)
		}
	}
	p.most = max(p.most, len(part))
	return part, nil
}

// A long history is read in parts, each term once, also if many terms began at
// the same time. If there are too many, the newest are read.
func TestReadTermsReturnsEachTermOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for together, most := range map[int]int{1: timelinePart, 7: timelinePart, 3 * timelinePart: 4 * timelinePart} {
		for _, count := range []int{0, 5, timelinePart, 2*timelinePart + 3, maxTimelineTerms + 1000} {
			if count > maxTimelineTerms && together != 7 {
				continue
			}
			past := &pastOfMany{}
			for i := range count {
				past.terms = append(past.terms, snapshotTerm(int64(count-i), 1, now.Add(-time.Duration(i/together)*time.Second)))
			}
			terms, err := readTerms(t.Context(), past, "scheduler")
			want := min(count, maxTimelineTerms)
			if err != nil || len(terms) != want || past.most > most {
				t.Fatalf("%d terms, %d at a time: %d were read, at most %d together (%v)", count, together, len(terms), past.most, err)
			}
			for i, term := range terms {
				if term.Term != int64(count-want+i+1) {
					t.Fatalf("%d terms, %d at a time: the term %d is at %d", count, together, term.Term, i)
				}
			}
		}
	}
}
