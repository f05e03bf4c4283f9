package processor_test

import (
	"context"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/processor"
)

// TestPublisherSendsAgainAfterLostTerm: an event that was sent when its leader was lost,
// before the progress was saved, is sent again by the next leader.
func TestPublisherSendsAgainAfterLostTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := make(chan string, 100)
	again := make(chan struct{}) // closed when the second leader has sent the event
	first := w.Node("sends-first", tenure.Config{})
	config := processor.Config{Name: "sends"}
	config.Publish = func(ctx context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
		sent <- "first sends " + string(batch[0].Data)
		select {
		case <-again: // the process was stopped in between
		case <-w.Context().Done():
		}
		return len(batch), context.Cause(ctx)
	}
	w.group(first, config)
	w.append(7)
	next := func() string {
		select {
		case text := <-sent:
			return text
		case <-time.After(patience):
			return "nothing"
		}
	}
	if got := next(); got != "first sends 7" {
		t.Fatal(got)
	}

	second := w.Node("sends-second", tenure.Config{})
	config.Publish = func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
		sent <- "second sends " + string(batch[0].Data)
		close(again)
		return len(batch), nil
	}
	w.group(second, config)
	w.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenure sends-first session'")
	if got := next(); got != "second sends 7" {
		t.Fatal(got)
	}
	w.Await("the event to be counted", func() bool { return w.exists("sends") && w.show("sends").Processed == 1 })
	select {
	case got := <-sent:
		t.Errorf("afterwards: %s", got)
	default:
	}
}
