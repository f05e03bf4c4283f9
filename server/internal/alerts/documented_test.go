package alerts

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// A condition may yield 10,000 series and read 1,000,000 samples: 100 points of each.
func TestConditionsAreLimited(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, c := range []struct {
		series    int
		condition string
		says      string // part of the error; empty if there is none
	}{
		{10_000, metric, ""},
		{10_001, metric, "the condition yields 10001 series; the limit is 10000"},
		{10_000, "sum(max_over_time((" + metric + " @ %d)[980s:10s]))", ""},
		{10_000, "sum(max_over_time((" + metric + " @ %d)[1020s:10s]))", "more than 1000000 samples"},
	} {
		store, now := measured(c.series, 1)
		condition := strings.ReplaceAll(c.condition, "%d", strconv.FormatInt(now.Unix(), 10))
		err := newEvaluator(store).evaluate(t.Context(), now, []Rule{{Name: "r", Condition: condition}})[0].err
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d series of %s: %v; want %q", c.series, condition, err, c.says)
		}
	}
}

// A condition ends when the heap has grown by 384 MB. Memory that is never written to
// counts, and the machine does not need it.
func TestMemoryOfAConditionIsLimited(t *testing.T) {
	runtime.GC() // what other tests left does not count, and its removal would hide the growth
	watched, stop := watchMemory(t.Context())
	defer stop()
	taken := make([]byte, 390<<20)
	select {
	case <-watched.Done():
	case <-time.After(20 * time.Second):
		t.Error("the condition continues with more than 384 MB")
	}
	if cause := context.Cause(watched); cause != nil && !errors.Is(cause, errMemory) {
		t.Errorf("it ended because of %v; want %v", cause, errMemory)
	}
	runtime.KeepAlive(taken)
}

// stalled is a storage that answers no query before it ends.
type stalled struct{ storage.Querier }

func (s stalled) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	<-ctx.Done()
	return storage.ErrSeriesSet(context.Cause(ctx))
}

// One condition may take 10 s, and all together 15 s.
func TestSlowConditionsAreEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEvaluator(queryableFunc(func(int64, int64) (storage.Querier, error) { return stalled{storage.NoopQuerier()}, nil }))
		for rules, want := range map[int]time.Duration{1: 10 * time.Second, 2: 15 * time.Second} {
			begun := time.Now()
			outcomes := e.evaluate(t.Context(), begun, []Rule{{Name: "a", Condition: metric}, {Name: "b", Condition: metric}}[:rules])
			if took := time.Since(begun); took != want {
				t.Errorf("%d slow conditions take %v, want %v", rules, took, want)
			}
			for _, o := range outcomes {
				if o.err == nil {
					t.Errorf("of %d slow conditions, %s has no error", rules, o.rule.Name)
				}
			}
		}
	})
}

func TestRoundsAreTenSecondsApartByDefault(t *testing.T) {
	t.Parallel()
	e, err := New(Config{})
	if err != nil || e.config.Interval != 10*time.Second {
		t.Errorf("the interval is %v (%v), want 10s", e.config.Interval, err)
	}
}
