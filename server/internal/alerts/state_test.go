package alerts

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStepSendsEachChangeOnce: rules over many rounds, where at any point the state is read back from
// what was written. Every beginning and every end that lasted is sent once, in
// order, and the end to the addresses that got the beginning.
func TestStepSendsEachChangeOnce(t *testing.T) {
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
			c := step(now, present, []outcome{o}, true, attention{})
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
				t.Fatalf("got the notifications %q; want %q", got, want)
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

// TestRemovedRuleResolvesItsAlerts: the alerts of a rule that is gone are over.
func TestRemovedRuleResolvesItsAlerts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	rule := Rule{Name: "r", Notify: []string{"a"}}
	began := step(now, nil, []outcome{{rule: rule, found: []found{{labels: map[string]string{"x": "y"}}}}}, true, attention{})
	present := apply(map[alertKey]alert{}, began)
	if early := step(now.Add(time.Second), present, nil, false, attention{}); !early.empty() {
		t.Errorf("before all samples have come: %+v", early)
	}
	over := step(now.Add(time.Second), present, nil, true, attention{})
	if len(over.notify) != 1 || over.notify[0].address != "a" || over.notify[0].endedAt.IsZero() || len(apply(present, over)) != 0 {
		t.Errorf("%+v", over)
	}
}

// TestNothingFiresBeforeAllSamples: before all samples have come nothing fires; what holds then
// fires as soon as they have.
func TestNothingFiresBeforeAllSamples(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	outcomes := []outcome{{rule: Rule{Name: "r", Notify: []string{"a"}}, found: []found{{}}}}
	early := step(now, nil, outcomes, false, attention{})
	present := apply(map[alertKey]alert{}, early)
	if len(early.notify) > 0 || len(early.written) != 1 || early.written[0].State != Pending {
		t.Fatalf("%+v", early)
	}
	if again := step(now.Add(time.Second), present, outcomes, false, attention{}); !again.empty() {
		t.Errorf("%+v", again)
	}
	full := step(now.Add(2*time.Second), present, outcomes, true, attention{})
	if len(full.notify) != 1 || full.written[0].State != Firing || !full.written[0].ActiveAt.Equal(now) {
		t.Errorf("%+v", full)
	}
}

// TestLaterAddressIsNotifiedOnce: an address that a rule names only while its alert fires is
// notified once that it fires, and of its end like the others.
func TestLaterAddressIsNotifiedOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	rule := Rule{Name: "r", Notify: []string{"a"}}
	found := []found{{labels: map[string]string{"x": "y"}}}
	present := apply(map[alertKey]alert{}, step(now, nil, []outcome{{rule: rule, found: found}}, true, attention{}))
	rule.Notify = []string{"b", "c"}
	more := step(now.Add(time.Second), present, []outcome{{rule: rule, found: found}}, true, attention{})
	var told []string
	for _, n := range more.notify {
		told = append(told, n.address)
		if !n.endedAt.IsZero() || !n.alert.FiredAt.Equal(now) {
			t.Errorf("%+v", n)
		}
	}
	present = apply(present, more)
	if !slices.Equal(told, []string{"b", "c"}) || !step(now.Add(2*time.Second), present, []outcome{{rule: rule, found: found}}, true, attention{}).empty() {
		t.Errorf("got the notifications %q", told)
	}
	if over := step(now.Add(3*time.Second), present, nil, true, attention{}); len(over.notify) != 3 {
		t.Errorf("%+v", over)
	}
}

// TestForRestartsWhenClockGoesBack: where the database's clock goes back, "for" begins anew and not
// in the future; and nothing ends before it began.
func TestForRestartsWhenClockGoesBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	outcomes := []outcome{
		{rule: Rule{Name: "slow", For: time.Minute, Notify: []string{"a"}}, found: []found{{}}},
		{rule: Rule{Name: "fires", Notify: []string{"a"}}, found: []found{{}}},
	}
	present := apply(map[alertKey]alert{}, step(now, nil, outcomes, true, attention{}))
	now = now.Add(-time.Hour)
	present = apply(present, step(now, present, outcomes, true, attention{}))
	if c := step(now.Add(time.Minute), present, outcomes, true, attention{}); len(c.written) != 1 || c.written[0].Rule != "slow" || c.written[0].State != Firing {
		t.Errorf("%+v", c)
	}
	for _, n := range step(now.Add(time.Minute), present, nil, true, attention{}).notify {
		if n.endedAt.Before(n.alert.FiredAt) {
			t.Errorf("%s ended %v before it began", n.alert.Rule, n.alert.FiredAt.Sub(n.endedAt))
		}
	}
}

// TestLimiterAllowsOneBurst: a burst, and then one after the other.
func TestLimiterAllowsOneBurst(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	l := newLimiter(60)
	for i := range 13 {
		want := time.Duration(max(0, i-10+1)) * time.Second
		if got := l.take(now); got != want {
			t.Errorf("the message %d waits %v; want %v", i, got, want)
		}
	}
	if got := l.take(now.Add(time.Minute)); got != 0 {
		t.Errorf("after a minute a message waits %v", got)
	}
}
