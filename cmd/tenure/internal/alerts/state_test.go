package alerts

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStep: rules over many rounds, where at any point the state is read back from
// what was written. Every beginning and every end that lasted is told once, in
// turn, and to whom the beginning was told.
func TestStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Name: "r", For: time.Duration(rapid.IntRange(0, 3).Draw(t, "for")) * time.Second, Notify: []string{"a", "b"}}
		present := map[alertKey]alert{}
		since := map[string]time.Time{} // the dumb model: since when each series is there
		firing := map[string]bool{}
		now := time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			now = now.Add(time.Duration(rapid.IntRange(1, 2).Draw(t, "seconds")) * time.Second)
			fails := rapid.IntRange(0, 5).Draw(t, "fails") == 0
			o := outcome{rule: rule}
			var want []string
			for i := range 3 {
				name := strconv.Itoa(i)
				there := rapid.Bool().Draw(t, "there")
				if fails {
					continue
				}
				if !there {
					delete(since, name)
					if firing[name] {
						want = append(want, "a ended "+name, "b ended "+name)
						delete(firing, name)
					}
					continue
				}
				o.found = append(o.found, found{labels: map[string]string{"i": name}, value: 1})
				if _, ok := since[name]; !ok {
					since[name] = now
				}
				if now.Sub(since[name]) >= rule.For && !firing[name] {
					firing[name] = true
					want = append(want, "a began "+name, "b began "+name)
				}
			}
			if fails {
				o.err = errFailed
			}
			c := step(now, present, []outcome{o}, true)
			var got []string
			for _, n := range c.notify {
				what := " ended "
				if n.endedAt.IsZero() {
					what = " began "
				}
				got = append(got, n.address+what+n.alert.Labels["i"])
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("told is %q; want %q", got, want)
			}
			present = apply(present, c)
			if len(present) != len(since) {
				t.Fatalf("there are %d alerts; want %d", len(present), len(since))
			}
		}
	})
}

type failed struct{}

func (failed) Error() string { return "it failed" }

var errFailed = failed{}

// TestRemovedRule: the alerts of a rule that is gone are over.
func TestRemovedRule(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	rule := Rule{Name: "r", Notify: []string{"a"}}
	began := step(now, nil, []outcome{{rule: rule, found: []found{{labels: map[string]string{"x": "y"}}}}}, true)
	present := apply(map[alertKey]alert{}, began)
	if early := step(now.Add(time.Second), present, nil, false); !early.empty() {
		t.Errorf("before all samples have come: %+v", early)
	}
	over := step(now.Add(time.Second), present, nil, true)
	if len(over.notify) != 1 || over.notify[0].address != "a" || over.notify[0].endedAt.IsZero() || len(apply(present, over)) != 0 {
		t.Errorf("%+v", over)
	}
}

// TestLimiter: a burst, and then one after the other.
func TestLimiter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	l := newLimiter(60)
	for i := range 13 {
		want := time.Duration(max(0, i-burst+1)) * time.Second
		if got := l.take(now); got != want {
			t.Errorf("the message %d waits %v; want %v", i, got, want)
		}
	}
	if got := l.take(now.Add(time.Minute)); got != 0 {
		t.Errorf("after a minute a message waits %v", got)
	}
}
