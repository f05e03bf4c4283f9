package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/tracing"
	"github.com/exactly-one/tenure/tenuretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// traced is an election whose ended spans are kept.
type traced struct {
	*testing.T
	database *tenuretest.Database
	node     *tenure.Node
	election *tenure.Election
	spans    *tracetest.SpanRecorder
}

func newTraced(t *testing.T, config tenure.ElectionConfig) *traced {
	t.Helper()
	w := &traced{T: t, database: tenuretest.NewDatabase(), spans: tracetest.NewSpanRecorder()}
	var err error
	w.node, err = tenure.Open(t.Context(), w.database, tenure.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		w.election, err = w.node.ElectionWith(tenure.NamedRole("r"), config)
	}
	if err != nil {
		t.Fatal(err)
	}
	tracing.Trace(w.election, trace.NewTracerProvider(trace.WithSpanProcessor(w.spans)))
	return w
}

func (w *traced) lead() {
	w.Helper()
	if err := w.election.Start(w.Context()); err != nil && !errors.Is(err, tenure.ErrAlreadyStarted) {
		w.Fatal(err)
	}
	if _, err := w.election.WaitForLeadership(w.Context()); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *traced) close() {
	w.Helper()
	if err := w.node.Close(context.Background()); err != nil {
		w.Error(err)
	}
}

// ended checks the names of the spans that have ended, and returns them.
func (w *traced) ended(names ...string) []trace.ReadOnlySpan {
	w.Helper()
	synctest.Wait()
	spans := w.spans.Ended()
	if len(spans) != len(names) {
		w.Fatalf("%d spans, want %q", len(spans), names)
	}
	for i, span := range spans {
		if span.Name() != names[i] {
			w.Fatalf("span %d is %s, want %q", i, span.Name(), names)
		}
	}
	return spans
}

func attributes(span trace.ReadOnlySpan) map[attribute.Key]any {
	all := map[attribute.Key]any{}
	for _, a := range span.Attributes() {
		all[a.Key] = a.Value.AsInterface()
	}
	return all
}

func TestReleasedTermEndsItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTraced(t, tenure.ElectionConfig{})
		defer w.close()
		w.lead()
		acquire := w.ended("tenure.acquire")[0]
		number := w.election.Term().Number()
		guard, err := w.election.Term().Guard()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		go func() {
			time.Sleep(3 * time.Second)
			guard.Done()
		}()
		if err := w.election.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		spans := w.ended("tenure.acquire", "tenure.release", "tenure.term")
		release, term := spans[1], spans[2]
		for _, span := range spans {
			if got := attributes(span); got["tenure.role"] != "r" || got["tenure.term"] != number || got["tenure.node.id"] != w.node.ID().String() {
				t.Errorf("the attributes of %s are %v", span.Name(), got)
			}
		}
		if took := term.EndTime().Sub(term.StartTime()); took != time.Minute+3*time.Second {
			t.Errorf("the term took %v", took)
		}
		if took := release.EndTime().Sub(release.StartTime()); took != 3*time.Second {
			t.Errorf("the release took %v", took)
		}
		if release.Parent().SpanID() != term.SpanContext().SpanID() || term.Parent().IsValid() {
			t.Error("the release is no child of the term, or the term has a parent")
		}
		if links := term.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != acquire.SpanContext().SpanID() {
			t.Errorf("the term is linked to %v", links)
		}
		if term.Status().Code != codes.Unset {
			t.Errorf("the term's status is %v", term.Status())
		}
	})
}

func TestLostTermEndsItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTraced(t, tenure.ElectionConfig{})
		defer w.close()
		w.lead()
		w.database.Revoke(tenure.NamedRole("r"))
		synctest.Wait()
		w.lead() // again
		term := w.ended("tenure.acquire", "tenure.term", "tenure.acquire")[1]
		if term.Status().Code != codes.Error || len(term.Events()) != 1 {
			t.Errorf("the term's status is %v, its events %v", term.Status(), term.Events())
		}
	})
}

// A role that is recovered within the grace gets another term, and no span is
// left open.
func TestRecoveredRoleLeavesNoOpenSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTraced(t, tenure.ElectionConfig{ReconnectGrace: time.Minute})
		w.lead()
		w.database.Revoke(tenure.NamedRole("r"))
		synctest.Wait()
		w.lead()
		w.close()
		synctest.Wait()
		if started, ended := len(w.spans.Started()), len(w.spans.Ended()); started != ended || ended != 5 {
			t.Errorf("%d spans were started and %d ended", started, ended)
		}
	})
}
