package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/exactly-one/tenure"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/exactly-one/tenure/adapters/tracing"

// Trace creates spans for an election. Call it once, before the election
// starts. The provider's exporters can delay the election's other callbacks,
// but never a heartbeat.
func Trace(election *tenure.Election, provider trace.TracerProvider) {
	t := tracer{tracer: provider.Tracer(scope)}
	election.OnEvent(func(event tenure.Event) {
		if event.Kind == tenure.EventStateChange {
			t.changed(event)
		}
	})
}

// tracer creates the spans of one election. Its events are delivered one at a
// time.
type tracer struct {
	tracer    trace.Tracer
	attempted time.Time
	term      trace.Span // of the current term, or nil
	inTerm    context.Context
	release   trace.Span // of the current term, or nil
}

func (t *tracer) changed(event tenure.Event) {
	switch event.From {
	case tenure.Leading:
		if event.To == tenure.Releasing {
			_, t.release = t.tracer.Start(t.inTerm, "tenure.release", attributesOf(event.Term), trace.WithTimestamp(event.At))
		} else {
			t.end(event)
		}
	case tenure.Releasing:
		t.end(event)
	}
	switch event.To {
	case tenure.Acquiring, tenure.Reconnecting:
		t.attempted = event.At
	case tenure.Leading:
		t.begin(event)
	}
}

func (t *tracer) begin(event tenure.Event) {
	term := event.Term
	attributes := attributesOf(term)
	ctx := context.Background()
	acquiring, acquire := t.tracer.Start(ctx, "tenure.acquire", attributes, trace.WithTimestamp(t.attempted), trace.WithNewRoot())
	if vacant := term.PrecedingVacancy(); vacant >= 0 {
		acquire.SetAttributes(attribute.Float64("tenure.vacant_seconds", vacant.Seconds()))
	}
	acquire.End(trace.WithTimestamp(event.At))
	t.inTerm, t.term = t.tracer.Start(ctx, "tenure.term", attributes, trace.WithTimestamp(event.At), trace.WithNewRoot(),
		trace.WithLinks(trace.LinkFromContext(acquiring)))
}

func attributesOf(term *tenure.Term) trace.SpanStartEventOption {
	return trace.WithAttributes(
		attribute.String("tenure.role", term.Role().Name()),
		attribute.Int64("tenure.term", term.Number()),
		attribute.String("tenure.node.id", term.NodeID().String()),
	)
}

// end ends the spans of the current term.
func (t *tracer) end(event tenure.Event) {
	for _, span := range []trace.Span{t.release, t.term} {
		if span == nil {
			continue
		}
		if event.Err != nil {
			span.RecordError(event.Err, trace.WithTimestamp(event.At))
			span.SetStatus(codes.Error, event.Err.Error())
		}
		span.End(trace.WithTimestamp(event.At))
	}
	t.release, t.term, t.inTerm = nil, nil, nil
}
