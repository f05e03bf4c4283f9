package observer

import (
	"sync"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// The scenarios, and how many comparisons all of them make at least.
const (
	allScenarios = 22
	leastCases   = 900
)

// Each scenario causes something known in a cluster of real processes. All that is shown
// about it agrees with what happened, within the bound that the case states.
func TestShownAgreesWithWhatHappened(t *testing.T) {
	pgtest.Long(t)
	cases, rhythm, done := &table{}, &pulse{}, make(chan struct{})
	conn := pgtest.Shared(t).Conn(t)
	var measured sync.WaitGroup
	measured.Go(func() { rhythm.run(conn, done) }) // exits when done is closed, below
	t.Run("scenarios", func(t *testing.T) {        // it waits for all of them
		for name, scenario := range map[string]func(*scene){
			"5 failovers":        fiveFailovers,
			"35 failovers":       manyFailovers,
			"freeze":             freeze,
			"trust ended":        trustEnded,
			"death unobserved":   deathUnobserved,
			"settle":             settle,
			"step-down":          stepDown,
			"hand-over":          handOver,
			"drain":              drain,
			"rolling restart":    rollingRestart,
			"same name restarts": sameName,
			"two roles":          twoRoles,
			"long names":         longNames,
			"once":               once,
			"crash loop":         crashLoop,
			"rebalance":          rebalance,
			"replay":             replay,
			"schedules":          schedules,
			"alerts":             alerts,
			"behind an agent":    behindAgent,
			"one dialect":        oneDialect,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(newScene(t, name, cases, rhythm, pgtest.Shared(t)))
			})
		}
		t.Run("outage", func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t, pgtest.Options{})
			outage(newScene(t, "outage", cases, rhythm, server), server)
		})
	})
	close(done)
	measured.Wait()
	t.Log(cases)
	ran := map[string]bool{}
	for _, r := range cases.rows {
		ran[r.scenario] = true
	}
	if n := len(cases.rows); len(ran) == allScenarios && n < leastCases && !t.Failed() { // a pattern selects only some
		t.Errorf("%d cases; want at least %d", n, leastCases)
	}
}
