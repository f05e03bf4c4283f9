package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

// runProcessor runs a processor with two events, on a node that leads it until the
// test ends.
func runProcessor(t *testing.T, i *postgrestest.Installation, name string, handle func() error) {
	t.Helper()
	store := eventstore.New(i.Backend, eventstore.Config{})
	group, err := processor.NewGroup(i.Node("worker", tenure.Config{Logger: silent}), tenure.NamedRole("views"), i.Pool, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = group.Add(processor.Config{
		Name: name, Log: store.Log(), BatchSize: 1, PollInterval: 10 * time.Millisecond, MaxPollInterval: 10 * time.Millisecond, MaxAttempts: 1,
		Handle: func(context.Context, pgx.Tx, []processor.Event) error { return handle() },
	})
	if err != nil {
		t.Fatal(err)
	}
	for number := range 2 {
		if err := store.Append(t.Context(), i.Pool, eventstore.NewEvent{Type: "counted", Data: number}); err != nil {
			t.Fatal(err)
		}
	}
	postgrestest.Run(t, group.Run)
	admin := processor.NewAdmin(i.Backend, i.Pool)
	i.Await("the processor", func() bool {
		s, err := admin.Show(t.Context(), name)
		return err == nil && (s.Processed == 2 || s.Status == processor.Failed)
	})
}

// failsWhile returns a handler that fails while a switch is on.
func failsWhile(broken *atomic.Bool) func() error {
	return func() error {
		if broken.Load() {
			return errors.New("the handler is broken")
		}
		return nil
	}
}

// TestProcessorsAreRepairedOverHTTP: a failing processor is shown and repaired with every request
// that there is, and each change has the address that asked for it.
func TestProcessorsAreRepairedOverHTTP(t *testing.T) {
	t.Parallel()
	i := postgrestest.Unmigrated(t)
	var broken atomic.Bool
	broken.Store(true)
	runProcessor(t, i, "counts", failsWhile(&broken))
	h := workHandler(t, i, i.Pool)
	const path = "/v1/processors/counts"
	show := func() record.Processor {
		t.Helper()
		return decode[record.Processor](t, call(t, h, http.MethodGet, path, "").want(t, 200).body)
	}
	post := func(action, body string, status int) string {
		t.Helper()
		return call(t, h, http.MethodPost, path+action, body, authorized...).want(t, status).body
	}
	all := decode[record.Processors](t, call(t, h, http.MethodGet, "/v1/processors", "").want(t, 200).body).Processors
	if len(all) != 1 || all[0].Processor != "counts" || all[0].Status != "failed" || all[0].Failing == nil || !strings.Contains(all[0].LastError, "broken") {
		t.Fatalf("the processors are %+v", all)
	}
	lag := decode[record.Lags](t, call(t, h, http.MethodGet, "/v1/processor-lag?processor=counts", "").want(t, 200).body)
	if len(lag.Processors) != 1 || lag.Processors[0].Processor != "counts" {
		t.Errorf("the lag is %+v", lag)
	}

	failing := *all[0].Failing
	for range 2 { // the second skips no other event
		skipped := decode[record.SkippedEvent](t, post("/skip", `{"at": "`+failing+`"}`, 200))
		if skipped.Skipped != failing {
			t.Errorf("%+v, want %s", skipped, failing)
		}
	}
	letters := decode[record.DeadLetters](t, call(t, h, http.MethodGet, path+"/dead-letters?count=5", "").want(t, 200).body).DeadLetters
	if len(letters) != 1 || letters[0].Event != failing || letters[0].SkippedBy != askedOverHTTP {
		t.Fatalf("the dead letters are %+v", letters)
	}
	// An attempt in flight would fail after the retry.
	i.Await("the failure of the next event", func() bool { s := show(); return s.Status == "failed" && *s.Failing != failing })
	broken.Store(false)
	post("/retry", "", 200)
	if n := decode[record.DismissedLetters](t, post("/dismiss", `{"all": true}`, 200)).Dismissed; n != 1 {
		t.Errorf("%d are dismissed", n)
	}
	if l := decode[record.DeadLetters](t, call(t, h, http.MethodGet, path+"/dead-letters", "").want(t, 200).body).DeadLetters; len(l) != 1 || l[0].DismissedBy != askedOverHTTP || show().DeadLetters != 0 {
		t.Errorf("after a dismissal: %+v", l)
	}
	if n := decode[record.ReplayedLetters](t, post("/replay", fmt.Sprintf(`{"ids": [%d]}`, letters[0].ID), 202)).Replaying; n != 1 {
		t.Errorf("%d are replayed", n)
	}
	i.Await("the replay", func() bool { s := show(); return s.DeadLetters == 0 && s.Behind == 0 && s.Status == "active" })

	if s := decode[record.Processor](t, post("/pause", "", 200)); s.Status != "paused" || s.Busy {
		t.Errorf("%+v", s)
	}
	if s := decode[record.Processor](t, post("/rewind", `{"to": "start"}`, 200)); s.Cursor != "0:0" {
		t.Errorf("%+v", s)
	}
	if s := decode[record.Processor](t, post("/resume", "{}", 200)); s.Status != "active" {
		t.Errorf("%+v", s)
	}
	i.Await("the events again", func() bool { return show().Cursor != "0:0" })
	if r := decode[record.RepairedLog](t, post("/repair", "", 200)); r.Events != 0 || len(r.Processors) != 0 {
		t.Errorf("%+v", r)
	}

	var actions []string
	for _, c := range decode[record.Audit](t, call(t, h, http.MethodGet, "/v1/audit?count=100", "").want(t, 200).body).Actions {
		actions = append(actions, c.Action)
		if c.By != askedOverHTTP {
			t.Errorf("%+v was not asked over HTTP", c)
		}
	}
	if got, want := strings.Join(actions, " "), "resume rewind pause replay dismiss retry skip"; got != want {
		t.Errorf("the changes are %q, want %q", got, want)
	}
}

// TestProcessorsRefuseBadRequests: each refusal has its status, its code and one
// sentence.
func TestProcessorsRefuseBadRequests(t *testing.T) {
	t.Parallel()
	i := postgrestest.Unmigrated(t)
	runProcessor(t, i, "counts", failsWhile(&atomic.Bool{}))
	h := workHandler(t, i, i.Pool)
	for _, c := range []struct {
		method, target, body string
		status               int
		code, words          string
	}{
		{"GET", "/v1/processors/count", "", 404, codeUnknownProcessor, `there is no processor \"count\"; known processors: counts`},
		{"GET", "/v1/processor-lag?processor=counts&processor=none", "", 404, codeUnknownProcessor, "none"},
		{"GET", "/v1/processors/counts/dead-letters?count=1001", "", 400, codeInvalidQuery, "between 1 and 1000"},
		{"POST", "/v1/processors/none/pause", "", 404, codeUnknownProcessor, "none"},
		{"POST", "/v1/processors/counts/skip", `{"at": "start"}`, 400, codeInvalidBody, "at: it must be a position"},
		{"POST", "/v1/processors/counts/skip", "", 409, codeConflict, `"no event of counts fails`},
		{"POST", "/v1/processors/counts/replay", "", 400, codeInvalidBody, "name dead letters"},
		{"POST", "/v1/processors/counts/replay", `{"ids": [1], "all": true}`, 400, codeInvalidBody, "name dead letters"},
		{"POST", "/v1/processors/counts/replay", `{"ids": [7]}`, 409, codeConflict, "no dead letter 7"},
		{"POST", "/v1/processors/counts/dismiss", "", 400, codeInvalidBody, "name dead letters"},
		{"POST", "/v1/processors/counts/dismiss", `{"ids": [7]}`, 409, codeConflict, "no dead letter 7"},
		{"POST", "/v1/processors/none/dismiss", `{"all": true}`, 404, codeUnknownProcessor, "none"},
		{"POST", "/v1/processors/counts/rewind", "", 400, codeInvalidBody, "to: it must be start"},
		{"POST", "/v1/processors/counts/rewind", `{"to": "99999999999:1"}`, 409, codeConflict, "no event can be at"},
		{"POST", "/v1/processors/counts/rebuild", "", 409, codeConflict, "it has no Reset"},
	} {
		r := call(t, h, c.method, c.target, c.body, authorized...).refused(t, c.status, c.code)
		if !strings.Contains(r.body, c.words) || strings.Contains(r.body, "invalid configuration") {
			t.Errorf("%s %s %s: %s; want %s", c.method, c.target, c.body, r.body, c.words)
		}
	}
	call(t, h, http.MethodPost, "/v1/processors/counts/pause", "").refused(t, 401, codeUnauthorized)
	admin := processor.NewAdmin(i.Backend, i.Pool)
	if changes, err := admin.Changes(t.Context(), "", 10); err != nil || len(changes) != 0 {
		t.Errorf("%+v, %v; want no change", changes, err)
	}
}

// coverProcessors asks for every answer about processors.
func coverProcessors(t *testing.T, answered coverage) {
	t.Helper()
	i := postgrestest.Unmigrated(t)
	var broken atomic.Bool
	broken.Store(true)
	runProcessor(t, i, "counts", failsWhile(&broken))
	const one = "/v1/processors/counts"
	coverReads(t, i, answered, "/v1/processors", "/v1/processor-lag", one, one+"/dead-letters?count=5")
	const ahead = `{"to":"99999999999:1"}`
	bodies := map[string]string{"/skip": "", "/replay": `{"ids":[7]}`, "/dismiss": `{"ids":[7]}`, "/rewind": ahead}
	actions := []string{"/skip", "/pause", "/resume", "/retry", "/replay", "/dismiss", "/rewind", "/rebuild", "/repair"}
	var writes []write
	for _, action := range actions {
		writes = append(writes, write{"POST", one + action, bodies[action]})
	}
	coverWrites(t, i, answered, writes...)
	h := workHandler(t, i, i.Pool)
	seen := func(method, target, body string) {
		t.Helper()
		answered.seen(t, h, method, target, body, authorized...)
	}
	for _, action := range actions {
		seen("POST", "/v1/processors/none"+action, bodies[action])
		seen("POST", one+action, bodies[action])
	}
	broken.Store(false)
	i.Await("the end of the failure", func() bool {
		seen("POST", one+"/retry", "") // again, for an attempt that was in flight
		return postgrestest.Value[bool](i, `SELECT processed + (SELECT count(*) FROM {dead_letters}) = 2 FROM {processors}`)
	})
	seen("POST", one+"/skip", "") // no event fails
	seen("POST", one+"/replay", `{"all":true}`)
	seen("POST", one+"/dismiss", `{"all":true}`)
	seen("POST", one+"/rewind", `{"to":"start"}`)
	i.Exec(`UPDATE {processors} SET can_rebuild = true`)
	seen("POST", one+"/rebuild", "")
	i.Exec(`UPDATE {processors} SET log_table = '{}'`)
	seen("POST", one+"/repair", "")
	for _, target := range []string{"", "/dead-letters"} {
		seen("GET", "/v1/processors/none"+target, "")
	}
	seen("GET", "/v1/processor-lag?processor=none", "")
	coverSlowPause(t, answered)
}

// coverSlowPause pauses a processor whose batch does not end in time.
func coverSlowPause(t *testing.T, answered coverage) {
	t.Helper()
	h := handlerWithBatchInFlight(t)
	h.pauseWait = time.Second
	answered.seen(t, h, http.MethodPost, "/v1/processors/counts/pause", "", authorized...)
}

// handlerWithBatchInFlight returns a handler and a processor named counts, whose batch
// does not end before the test.
func handlerWithBatchInFlight(t *testing.T) *Handler {
	t.Helper()
	i := postgrestest.Unmigrated(t)
	var slow atomic.Bool
	entered, release := make(chan struct{}, 10), make(chan struct{})
	runProcessor(t, i, "counts", func() error {
		if slow.Load() {
			entered <- struct{}{}
			<-release
		}
		return nil
	})
	t.Cleanup(func() { close(release) })
	slow.Store(true)
	h := workHandler(t, i, i.Pool)
	call(t, h, http.MethodPost, "/v1/processors/counts/rewind", `{"to":"start"}`, authorized...).want(t, http.StatusOK)
	<-entered
	return h
}

// TestPauseIsAnsweredAfterHalfAMinute: a pause waits 30 s for the batch in flight.
func TestPauseIsAnsweredAfterHalfAMinute(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	h := handlerWithBatchInFlight(t)
	began := time.Now()
	call(t, h, http.MethodPost, "/v1/processors/counts/pause", "", authorized...).want(t, http.StatusAccepted)
	if took := time.Since(began); took < 30*time.Second || took > 45*time.Second {
		t.Errorf("202 was answered after %v, want 30s (bound 45s)", took)
	}
}
