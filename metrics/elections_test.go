package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/tenuretest"
)

// The four metrics of the source document, with the labels that its alerts use.
func TestMetricsOfTheSourceExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, tenuretest.NewDatabase(), "a")
		defer closeNode(t, node)
		lead(t, node, "scheduler")
		time.Sleep(90 * time.Second)
		got := scrape(t, metrics.NewElections(node, metrics.Config{Prefix: "forge"}))
		for name, kind := range map[string]dto.MetricType{
			"forge_leader_is_leader":       dto.MetricType_GAUGE,
			"forge_leader_elections_total": dto.MetricType_COUNTER,
			"forge_leader_tenure_seconds":  dto.MetricType_GAUGE,
			"forge_leader_failovers_total": dto.MetricType_COUNTER,
		} {
			if family := got[name]; family == nil || family.GetType() != kind {
				t.Errorf("%s: got %v", name, family)
			}
		}
		got.want(t, 1, "forge_leader_is_leader", "role", "scheduler")
		got.want(t, 1, "forge_leader_elections_total", "role", "scheduler")
		got.want(t, 90, "forge_leader_tenure_seconds", "role", "scheduler")
		got.want(t, 0, "forge_leader_failovers_total", "role", "scheduler")
		for name := range got {
			if name[:len("forge_leader_")] != "forge_leader_" {
				t.Errorf("%s has another prefix", name)
			}
		}
	})
}

func TestFailoverIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		a, b := open(t, db, "a"), open(t, db, "b")
		defer closeNode(t, b)
		of := func(node *tenure.Node) scraped {
			synctest.Wait()
			return scrape(t, metrics.NewElections(node, metrics.Config{}))
		}
		number := func(node *tenure.Node) float64 { return float64(node.Stats().Elections[0].Term) }
		lead(t, a, "r")
		standby := start(t, b, "r")
		time.Sleep(time.Minute)

		leader := of(a)
		leader.want(t, 1, "tenure_leader_is_leader", "role", "r")
		leader.want(t, number(a), "tenure_leader_term", "role", "r")
		leader.want(t, 1, "tenure_leader_roles_led")
		leader.want(t, 1, "tenure_leader_roles", "state", "leader")
		leader.want(t, 0, "tenure_leader_roles", "state", "follower")
		leader.want(t, 1, "tenure_leader_state", "role", "r", "state", "leader")
		leader.want(t, 1, "tenure_leader_connected")
		leader.want(t, 1, "tenure_leader_events_total", "event", "acquired")
		leader.want(t, 0, "tenure_leader_events_total", "event", "lost")
		leader.want(t, 1, "tenure_leader_transitions_total", "from", "acquiring", "to", "leader", "reason", "AcquireSucceeded")
		if trust, _ := leader.series("tenure_leader_trust_remaining_seconds"); trust <= 5 || trust > 9 {
			t.Errorf("trust remains for %v s, of 9 with a heartbeat every 3.3", trust)
		}

		waiting := of(b)
		waiting.want(t, 0, "tenure_leader_is_leader", "role", "r")
		waiting.want(t, 0, "tenure_leader_term", "role", "r")
		waiting.want(t, 0, "tenure_leader_tenure_seconds", "role", "r")
		waiting.want(t, 1, "tenure_leader_state", "role", "r", "state", "follower")
		if attempts, _ := waiting.series("tenure_leader_elections_total", "role", "r"); attempts < 10 {
			t.Errorf("%v attempts of the standby in a minute", attempts)
		}

		db.Revoke(tenure.NamedRole("r"))
		if _, err := standby.WaitForLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := of(b)
		next.want(t, 1, "tenure_leader_is_leader", "role", "r")
		next.want(t, number(b), "tenure_leader_term", "role", "r")
		next.want(t, 1, "tenure_leader_failovers_total", "role", "r")
		next.want(t, 1, "tenure_leader_terms_total", "role", "r")
		for name, count := range map[string]uint64{
			"tenure_leader_vacancy_seconds":            1,
			"tenure_leader_callback_delay_seconds":     0,
			"tenure_leader_heartbeat_duration_seconds": 19, // in a minute, and the first
		} {
			histogram := next[name].GetMetric()[0].GetHistogram()
			if histogram.GetSampleCount() != count || len(histogram.GetBucket()) < 10 {
				t.Errorf("%s: got %v, want %d", name, histogram, count)
			}
		}
		next.want(t, 9, "tenure_leader_trust_window_seconds")
		next.want(t, 0, "tenure_leader_session_reconnects_total")
		next.want(t, 0, "tenure_leader_session_failures_total")
		next.want(t, 0, "tenure_leader_heartbeat_failures_total")
		next.want(t, 0, "tenure_leader_callback_oldest_seconds")
		deposed := of(a)
		deposed.want(t, 0, "tenure_leader_is_leader", "role", "r")
		deposed.want(t, 1, "tenure_leader_losses_total", "role", "r")
		deposed.want(t, 1, "tenure_leader_events_total", "event", "lost")

		closeNode(t, a)
		closed := of(a)
		closed.want(t, 0, "tenure_leader_connected")
		closed.want(t, 0, "tenure_leader_trust_remaining_seconds")
	})
}

// Scrapes are answered while the database does not respond.
func TestScrapeNeedsNoDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := tenuretest.NewDatabase()
		node := open(t, db, "a")
		defer closeNode(t, node)
		lead(t, node, "r")
		resume := db.Silence(tenure.NamedRole("r"))
		db.Fail(errors.New("down"))
		time.Sleep(time.Hour)
		got := scrape(t, metrics.NewElections(node, metrics.Config{}))
		got.want(t, 0, "tenure_leader_is_leader", "role", "r")
		got.want(t, 0, "tenure_leader_connected")
		got.want(t, 1, "tenure_leader_losses_total", "role", "r")
		resume()
		db.Fail(nil)
		time.Sleep(time.Minute)
		scrape(t, metrics.NewElections(node, metrics.Config{})).want(t, 1, "tenure_leader_connected") // the outage is over
	})
}

func TestManyRolesShareASeries(t *testing.T) {
	node := open(t, tenuretest.NewDatabase(), "a")
	defer closeNode(t, node)
	const led, others = 3, 2
	for i := range led {
		lead(t, node, fmt.Sprintf("led-%d", i))
	}
	for i := range others {
		if _, err := node.Election(tenure.NamedRole(fmt.Sprintf("other-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	isLed := func(role string) bool { return role[0] == 'l' }
	for name, test := range map[string]struct {
		config metrics.Config
		own    int     // series with a role
		sum    float64 // the value of role=""; negative if there is none
	}{
		"all":                   {metrics.Config{MaxRoles: 5}, 5, -1},
		"one too many":          {metrics.Config{MaxRoles: 4}, 0, led},
		"by default":            {metrics.Config{}, 5, -1},
		"never":                 {metrics.Config{MaxRoles: -1}, 5, -1},
		"chosen":                {metrics.Config{Roles: isLed}, led, 0},
		"as many as chosen":     {metrics.Config{Roles: isLed, MaxRoles: led}, led, 0},
		"one too many chosen":   {metrics.Config{Roles: isLed, MaxRoles: led - 1}, 0, led},
		"none chosen":           {metrics.Config{Roles: func(string) bool { return false }}, 0, led},
		"all chosen, by choice": {metrics.Config{Roles: func(string) bool { return true }}, 5, -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := scrape(t, metrics.NewElections(node, test.config))
			for _, family := range []string{
				"is_leader", "elections_total", "failovers_total", "terms_total", "losses_total",
			} {
				want := test.own
				if test.sum >= 0 {
					want++
				}
				if n := len(got["tenure_leader_"+family].GetMetric()); n != want {
					t.Errorf("%s: %d series, want %d", family, n, want)
				}
			}
			for _, family := range []string{"tenure_seconds", "term", "state"} {
				if n := len(got["tenure_leader_"+family].GetMetric()); n != test.own {
					t.Errorf("%s: %d series, want %d", family, n, test.own)
				}
			}
			for _, family := range []string{"is_leader", "elections_total", "terms_total"} {
				total := 0.0
				for _, metric := range got["tenure_leader_"+family].GetMetric() {
					total += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
				if total != led {
					t.Errorf("%s: the sum over all roles is %v, want %v", family, total, led)
				}
			}
			sum, found := got.series("tenure_leader_is_leader", "role", "")
			if found != (test.sum >= 0) || found && sum != test.sum {
				t.Errorf(`role="": got %v (found: %v), want %v`, sum, found, test.sum)
			}
			got.want(t, led, "tenure_leader_roles_led")
			got.want(t, others, "tenure_leader_roles", "state", "stopped")
		})
	}
}

// A scrape returns every role name unchanged or, for unprintable characters, as
// code points.
func TestRoleNamesSurviveScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, tenuretest.NewDatabase(), "a")
		defer closeNode(t, node)
		names := []string{`"}`, `a\b\n`, " ", "{role='x'}", "key:1:2", strings.Repeat("👑", 255/len("👑"))}
		for _, name := range append(names, "\u202eright to left") {
			lead(t, node, name)
		}
		got := scrape(t, metrics.NewElections(node, metrics.Config{}))
		for _, name := range names {
			got.want(t, 1, "tenure_leader_is_leader", "role", name)
		}
		got.want(t, 1, "tenure_leader_is_leader", "role", `\u202eright to left`)
	})
}

func TestDefaultMaxRolesLimitsSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, tenuretest.NewDatabase(), "a")
		defer closeNode(t, node)
		series := func() int {
			return testutil.CollectAndCount(metrics.NewElections(node, metrics.Config{}), "tenure_leader_is_leader")
		}
		for i := range 1000 {
			if _, err := node.Election(tenure.NamedRole(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := series(); n != 1000 {
			t.Errorf("1000 roles: %d series", n)
		}
		if _, err := node.Election(tenure.NamedRole("one more")); err != nil {
			t.Fatal(err)
		}
		if n := series(); n != 1 {
			t.Errorf("1001 roles: %d series", n)
		}
	})
}

func TestElectionsFollowNamingConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, tenuretest.NewDatabase(), "a")
		defer closeNode(t, node)
		lead(t, node, "r")
		for _, prefix := range []string{"tenure", "forge"} {
			lint(t, metrics.NewElections(node, metrics.Config{Prefix: prefix}))
		}
	})
}

func lint(t *testing.T, c prometheus.Collector) {
	t.Helper()
	problems, err := testutil.CollectAndLint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func TestValidateRejectsPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := open(t, tenuretest.NewDatabase(), "a")
		defer closeNode(t, node)
		for _, prefix := range []string{"1a", "a-b", "a b", "a:b", "é", "a\n"} {
			config := metrics.Config{Prefix: prefix}
			if err := config.Validate(); !errors.Is(err, tenure.ErrInvalidConfig) {
				t.Errorf("%q: Validate returns %v", prefix, err)
			}
			for _, c := range []prometheus.Collector{metrics.NewElections(node, config), metrics.NewCluster(&fixed{}, config)} {
				if err := prometheus.NewRegistry().Register(c); !errors.Is(err, tenure.ErrInvalidConfig) {
					t.Errorf("%q: got the error %v", prefix, err)
				}
			}
		}
	})
}

// Run with -race: elections start and stop during concurrent scrapes.
func TestScrapesDoNotRaceWithElections(t *testing.T) {
	db := tenuretest.NewDatabase()
	node := open(t, db, "a")
	defer closeNode(t, node)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewElections(node, metrics.Config{MaxRoles: 20}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 3)
	for range cap(failed) {
		go func() {
			var err error
			for ctx.Err() == nil && err == nil {
				_, err = registry.Gather()
			}
			failed <- err
		}()
	}
	for i := range 40 {
		e := lead(t, node, fmt.Sprint(i))
		if i%2 == 0 {
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkScrape(b *testing.B) {
	for _, c := range []struct {
		roles int
		name  string
		most  int
	}{{1, "each", 0}, {1000, "each", 0}, {10_000, "summed up", 0}, {10_000, "each", -1}} {
		b.Run(fmt.Sprintf("roles=%d/%s", c.roles, c.name), func(b *testing.B) {
			node := open(b, tenuretest.NewDatabase(), "a")
			defer closeNode(b, node)
			for i := range c.roles {
				lead(b, node, fmt.Sprint(i))
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(metrics.NewElections(node, metrics.Config{MaxRoles: c.most}))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
