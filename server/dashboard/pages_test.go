package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/program/record"
)

// TestNodePageHasRolesAndHistory: the page of a node finds the node, its roles and its events, and
// an unknown node is not found.
func TestNodePageHasRolesAndHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	node, _ := w.node("api-1", "scheduler")
	w.led("scheduler", "api-1")
	detail := get[nodeDetail](w, "/api/node?id="+node.ID().String())
	if detail.Node == nil || detail.Name != "api-1" || detail.Node.Led != 1 {
		t.Errorf("the node is %+v", detail)
	}
	events := get[list[eventRecord]](w, "/api/events?node="+node.ID().String())
	if events.Total == 0 || events.Rows[0].NodeName != "api-1" {
		t.Errorf("its events are %+v", events)
	}
	if other := get[list[eventRecord]](w, "/api/events?node=00000000-0000-4000-8000-000000000009"); other.Total != 0 {
		t.Errorf("another node has %d events, want none", other.Total)
	}
	for _, path := range []string{"/api/node?id=00000000-0000-4000-8000-000000000009", "/api/node?id=x", "/api/node", "/nothing", "/api/nothing", "/assets/nothing.js"} {
		if response, text := w.request(http.MethodGet, path, ""); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s %s, want 404", path, response.Status, text)
		}
	}
}

// fillWork fills a processor with dead letters and a schedule with runs.
func fillWork(w *world) {
	w.exec(`INSERT INTO {processors} (name, kind, role) VALUES ('webhooks', 'outbox', 'views')`)
	w.exec(`INSERT INTO {processor_lags} (processor, behind, behind_more, held, measured_at) VALUES ('webhooks', 42, false, 0, clock_timestamp())`)
	w.exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
		SELECT 'webhooks', '7'::xid8, n, 'the receiver answered 400', 5, 1 FROM generate_series(1, 3) n`)
	w.exec(`INSERT INTO {schedules} (name, role, expression, timezone) VALUES ('nightly', 'views', '30 2 * * *', 'UTC')`)
	w.exec(`INSERT INTO {runs} (schedule, scheduled_for, state, started_at, ended_at, error, output)
		VALUES ('nightly', now() - interval '1 day', 'failed', now(), now(), 'exit status 3', 'cannot open the report')`)
}

// TestSchedulePageHasRunsAndTicks: the page of a schedule has the runs with their errors, the
// output of one run, and the next ticks.
func TestSchedulePageHasRunsAndTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, fillWork)
	detail := get[scheduleDetail](w, "/api/schedule?name=nightly")
	if len(detail.Next) != maxTicksShown || len(detail.Runs) != 1 || detail.Runs[0].Error != "exit status 3" {
		t.Fatalf("the schedule is %+v", detail)
	}
	run := get[record.RunWithOutput](w, "/api/run?id="+strconv.FormatInt(detail.Runs[0].Run, 10))
	if run.Output != "cannot open the report" || run.OutputBytes != len(run.Output) {
		t.Errorf("the run is %+v", run)
	}
	for _, path := range []string{"/api/schedule?name=other", "/api/run?id=99", "/api/run?id=x", "/api/processor?name=other"} {
		if response, text := w.request(http.MethodGet, path, ""); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s %s, want 404", path, response.Status, text)
		}
	}
}

// TestProcessorPageHasLagAndDeadLetters: the page of a processor has its lag over time and its
// dead letters.
func TestProcessorPageHasLagAndDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{}, fillWork)
	w.await("the lag is known", func() bool { return len(w.board.lags.of("webhooks")) > 0 })
	detail := get[processorDetail](w, "/api/processor?name=webhooks")
	if len(detail.DeadLetters) != 3 || detail.DeadLetters[2].Event != "7:3" || detail.Lags[0][1] != 42 {
		t.Errorf("the processor is %+v", detail)
	}
}

// TestSharedReadIsUsedAgain: requests within a second share one read, and a failed read
// is shared too.
func TestSharedReadIsUsedAgain(t *testing.T) {
	t.Parallel()
	s, reads, wrong := newSharedReads(sharedAge, sharedTimeout), 0, errors.New("wrong")
	read := func(context.Context) (any, error) { reads++; return reads, wrong }
	for range 100 {
		if got, err := s.get(t.Context(), "a", read); got != 1 || !errors.Is(err, wrong) {
			t.Fatalf("%v, %v; want the first result", got, err)
		}
	}
	s.results["a"].ended = time.Now().Add(-2 * sharedAge)
	if got, _ := s.get(t.Context(), "a", read); got != 2 {
		t.Errorf("%v; want a second read after the first is old", got)
	}
}

// TestLagSeriesKeepsLargestLag: points are lagInterval apart and keep the largest lag
// in between, and a removed processor is dropped.
func TestLagSeriesKeepsLargestLag(t *testing.T) {
	t.Parallel()
	l, start := newLagSeries(), time.Now()
	for i, behind := range []int64{3, 9, 4, 1} {
		l.add(start.Add(time.Duration(i)*6*time.Second), []processorRecord{{Name: "a", Behind: behind}})
	}
	if got := l.of("a"); len(got) != 2 || got[0][1] != 9 || got[1][1] != 1 {
		t.Errorf("%v; want 9 and then 1", got)
	}
	for i := range 2 * maxLagPoints {
		l.add(start.Add(time.Duration(i+9)*lagInterval), []processorRecord{{Name: "a"}})
	}
	if got := len(l.of("a")); got > maxLagPoints*5/4 {
		t.Errorf("%d points; want at most %d", got, maxLagPoints*5/4)
	}
	if l.add(start, nil); len(l.of("a")) != 0 {
		t.Error("a removed processor is kept")
	}
}

// TestReplayRequestsDeadLetters: an operator replays one dead letter and then all.
func TestReplayRequestsDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)}, fillWork)
	act := func(letters ...string) (reply, string) {
		return w.request(http.MethodPost, "/api/actions", object(map[string]any{"action": replayLetters, "name": "webhooks", "letters": letters}), "Authorization", "Bearer "+annasToken)
	}
	first := get[processorDetail](w, "/api/processor?name=webhooks", "Authorization", "Bearer "+annasToken).DeadLetters[0].ID
	if response, text := act(strconv.FormatInt(first, 10)); response.StatusCode != http.StatusOK || !strings.Contains(text, "1 dead letter again") {
		t.Errorf("one: %s %s", response.Status, text)
	}
	if response, text := act(); response.StatusCode != http.StatusOK || !strings.Contains(text, "3 dead letters again") {
		t.Errorf("all: %s %s", response.Status, text)
	}
	if response, text := act("x"); response.StatusCode != http.StatusNotFound {
		t.Errorf("an invalid one: %s %s", response.Status, text)
	}
}

// TestDismissedDeadLettersAreNoWarning: an operator dismisses dead letters, which stay listed
// with who dismissed them and when, and warn no longer. Those that the user did not name stay.
func TestDismissedDeadLettersAreNoWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Authentication: authentication(t)}, fillWork)
	headers := []string{"Authorization", "Bearer " + annasToken}
	act := func(letters ...string) (reply, string) {
		return w.request(http.MethodPost, "/api/actions", object(map[string]any{"action": dismissLetters, "name": "webhooks", "letters": letters}), headers...)
	}
	shown := get[processorDetail](w, "/api/processor?name=webhooks", headers...).DeadLetters
	for i, letter := range shown {
		if response, text := act(strconv.FormatInt(letter.ID, 10)); response.StatusCode != http.StatusOK || !strings.Contains(text, "1 dead letter is dismissed.") {
			t.Errorf("%s %s", response.Status, text)
		}
		want := trouble{level: good}
		if i < 2 {
			want = trouble{warning, quoted("webhooks") + " has " + count(2-i, "dead letter", "dead letters") + "."}
		}
		w.await("the warning is "+want.text, func() bool {
			work := w.board.snapshot.workNow()
			return len(work.Processors) == 1 && work.Processors[0].trouble() == want
		})
	}
	w.board.shared.results = map[string]*sharedResult{} // nothing else reads
	for _, letter := range get[processorDetail](w, "/api/processor?name=webhooks", headers...).DeadLetters {
		if letter.DismissedBy != "anna" || time.Since(time.Time(letter.DismissedAt)).Abs() > time.Minute {
			t.Errorf("the dead letter is %+v", letter)
		}
	}
	for _, letters := range [][]string{nil, {"x"}, {"999"}} {
		if response, text := act(letters...); response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusNotFound {
			t.Errorf("%v: %s %s", letters, response.Status, text)
		}
	}
	audit := get[list[auditRecord]](w, "/api/audit", headers...)
	if audit.Total != 3 || audit.Rows[0].Action != "dismiss" || audit.Rows[0].By != "anna" || audit.Rows[0].Name != "webhooks" || audit.Rows[0].Result != "done" {
		t.Errorf("the audit is %+v", audit)
	}
}

// TestRequestedRunReportsItsResult: the outcome of a requested run is final when the run has
// ended, and states a failure.
func TestRequestedRunReportsItsResult(t *testing.T) {
	t.Parallel()
	for state, want := range map[cron.State]struct {
		text         string
		done, failed bool
	}{
		"running": {"runs on", false, true}, "succeeded": {"succeeded", true, false}, "failed": {"failed: \u2068exit status 3\u2069.", true, true},
	} {
		p := newSnapshot()
		last := &record.Run{Run: 7, State: state, NodeName: "api-1"}
		if state == "failed" {
			last.Error = "exit status 3"
		}
		p.setWork(workRecord{Schedules: []scheduleRecord{{Name: "nightly", Loaded: true, Last: last}}}, nil)
		what := pendingAction{actionBody: actionBody{Action: triggerSchedule, Name: "nightly"}, run: 7}
		message, done, _ := p.outcomeOf(what)
		if !strings.Contains(message, want.text) || done != want.done || p.runFailed(what) != want.failed {
			t.Errorf("%s: %q, %v, failed %v; want %+v", state, message, done, p.runFailed(what), want)
		}
	}
}
