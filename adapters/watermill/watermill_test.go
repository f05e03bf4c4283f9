package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/adapters/watermill"
	"github.com/exactly-one/tenure/internal/outboxtest"
	"github.com/exactly-one/tenure/outbox"
	"github.com/exactly-one/tenure/processor"
)

func TestFaultsLoseNoMessage(t *testing.T) {
	var mu sync.Mutex
	var deliveries []outboxtest.Delivery
	broker := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // its sender was interrupted
		}
		d, err := outboxtest.FromHeaders(r.Header.Get, "")
		if err != nil || r.URL.Path != "/orders" {
			t.Error(err, r.URL)
		}
		mu.Lock()
		defer mu.Unlock()
		deliveries = append(deliveries, d)
	}))
	t.Cleanup(broker.Close)
	outboxtest.Run(t, outboxtest.Options{Target: broker.URL, Deliveries: func() []outboxtest.Delivery {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(deliveries)
	}})
}

// recorder is a publisher of Watermill that records its messages and rejects one of them.
type recorder struct {
	calls  []string
	last   *message.Message
	reject string
}

var errRejected = errors.New("rejected")

func (r *recorder) Publish(topic string, messages ...*message.Message) error {
	call := topic + ":"
	for _, m := range messages {
		if string(m.Payload) == r.reject {
			return errRejected
		}
		call += string(m.Payload)
		r.last = m
	}
	r.calls = append(r.calls, call)
	return nil
}

func (*recorder) Close() error { return nil }

func TestPublishSendsParts(t *testing.T) {
	t.Parallel()
	split := func(m outbox.Message) string { return fmt.Sprint("part", m.Event.Position/2) }
	for name, test := range map[string]struct {
		config       watermill.Config
		reject       string
		calls        []string
		acknowledged int
	}{
		"one by one":                {watermill.Config{}, "", []string{"orders:0", "orders:1", "orders:2"}, 3},
		"one of them is rejected":   {watermill.Config{}, "1", []string{"orders:0"}, 1},
		"whole batches":             {watermill.Config{WholeBatches: true}, "", []string{"orders:012"}, 3},
		"a whole batch is rejected": {watermill.Config{WholeBatches: true}, "1", nil, 0},
		"batches of two topics":     {watermill.Config{WholeBatches: true, Topic: split}, "", []string{"part0:01", "part1:2"}, 3},
		"the second one's fails":    {watermill.Config{WholeBatches: true, Topic: split}, "2", []string{"part0:01"}, 2},
		"one by one, two topics ":   {watermill.Config{Topic: split}, "", []string{"part0:0", "part0:1", "part1:2"}, 3},
	} {
		test.config.Name = "broker"
		r := &recorder{reject: test.reject}
		p, err := watermill.New(r, test.config)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged, err := p.Publish(t.Context(), outboxtest.Messages(3, 0, 2))
		failed := errors.Is(err, errRejected) && errors.Is(err, processor.ErrUnavailable)
		if acknowledged != test.acknowledged || !slices.Equal(r.calls, test.calls) || failed != (test.reject != "") {
			t.Errorf("%s: %d acknowledged, %q, %v", name, acknowledged, r.calls, err)
		}
	}
}

func TestMessagesCarryHeaders(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	p, err := watermill.New(r, watermill.Config{Name: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), outboxtest.Messages(3, 1, 1)); err != nil {
		t.Fatal(err)
	}
	m := outboxtest.Messages(3, 1, 1)[0]
	if r.last.UUID != m.ID.String() || len(r.last.Metadata) != len(m.Headers()) {
		t.Errorf("published %s with %v", r.last.UUID, r.last.Metadata)
	}
	for name, want := range m.Headers() {
		if r.last.Metadata.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, r.last.Metadata.Get(name), want)
		}
	}
}

func TestCanceledContextPublishesNothing(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	p, err := watermill.New(r, watermill.Config{Name: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(tenure.ErrTermEnded)
	if acknowledged, err := p.Publish(ctx, outboxtest.Messages(3, 0, 2)); acknowledged != 0 || !errors.Is(err, tenure.ErrTermEnded) || len(r.calls) > 0 {
		t.Errorf("%d acknowledged, %v, %q", acknowledged, err, r.calls)
	}
}

// poisoned is a publisher of Watermill that classifies every message as poison.
type poisoned struct{ recorder }

func (*poisoned) Publish(string, ...*message.Message) error { return processor.ErrPoison }

func TestPoisonIsReturned(t *testing.T) {
	t.Parallel()
	p, err := watermill.New(&poisoned{}, watermill.Config{Name: "broker"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), outboxtest.Messages(3, 1, 1)); !errors.Is(err, processor.ErrPoison) || errors.Is(err, processor.ErrUnavailable) {
		t.Error(err)
	}
}

func TestInvalidConfigsAreRejected(t *testing.T) {
	t.Parallel()
	if _, err := watermill.New(&recorder{}, watermill.Config{}); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Error(err)
	}
	if _, err := watermill.New(nil, watermill.Config{Name: "broker"}); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Error(err)
	}
}
