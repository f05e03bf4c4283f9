package browser

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/sampletest"
	"github.com/exactly-one/tenure/server/dashboard"
)

// token is what people log in with.
const token = "a-token-that-is-long-enough"

func withToken(t *testing.T) dashboard.Authentication {
	t.Helper()
	known, err := dashboard.Tokens(map[string]string{"anna": token}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dashboard.Authentication{Token: known}
}

// logIn enters the token.
func (p *page) logIn() {
	p.Helper()
	p.visit("#/login")
	p.do("log in", chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"))
	p.shows("Log out")
}

func someAlerts(context.Context) ([]dashboard.Alert, error) {
	since := time.Now().Add(-4 * time.Minute).Truncate(time.Hour)
	return []dashboard.Alert{
		{Name: "no_scheduler_leader", State: "inactive", Severity: "critical", Summary: "No node leads the scheduler.", Since: since.Add(-26 * time.Hour)},
		{
			Name: "frequent_failovers", State: "firing", Severity: "warning", Summary: "The role reports moved 7 times in 15 minutes.",
			Labels: map[string]string{"role": "reports"}, Since: since,
		},
		{Name: "heartbeat_slow", State: "pending", Severity: "warning", Summary: "Heartbeats take longer than a second.", Since: since},
	}, nil
}

// insertTerms fills the past of a role: terms that end in various ways, by nodes
// that take turns, the last of them $4 seconds ago.
const insertTerms = `
INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, vacant_ms, ended_by)
SELECT
    $1,
    i,
    ('00000000-0000-4000-8000-00000000000' || (i * 7 % 3 + 1))::uuid,
    'api-' || (i * 7 % 3 + 1),
    1,
    began,
    began + $3 * interval '1 second' - (CASE WHEN i % 5 = 0 THEN 9.7 ELSE 0.003 + (i % 7) / 900.0 END) * interval '1 second',
    (ARRAY['resigned', 'crashed', 'handed_over', 'stepped_down', 'lease_expired', 'shutdown'])[i % 6 + 1],
    CASE WHEN i > 1 THEN CASE WHEN i % 5 = 1 THEN 9700 ELSE 3 + ((i - 1) % 7) / 0.9 END END,
    CASE WHEN i % 6 = 3 THEN 'anna' ELSE '' END
FROM generate_series(1, $2::int) i,
    LATERAL (SELECT clock_timestamp() - $4 * interval '1 second' - ($2::int - i + 1) * $3 * interval '1 second') at (began)`

// moveLast makes the last term of a role follow those.
const moveLast = `
UPDATE {terms} t
SET
    term = h.term + 1, node_id = h.node_id, node_name = h.node_name, acquired_at = h.ended_at, ended_at = h.ended_at + interval '1 second',
    end_reason = 'resigned', vacant_ms = 4
FROM (SELECT * FROM {history} WHERE role = $1 ORDER BY term DESC LIMIT 1) h
WHERE t.role = $1`

// past gives roles a past of some terms, that began every some seconds.
func (w *world) past(terms int, everySeconds func(role string) int, roles ...string) {
	w.Helper()
	node := w.node(w.backend, "first", tenure.Config{})
	for _, role := range roles {
		election, err := node.Election(tenure.NamedRole(role))
		if err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.Context(), patience)
		_ = election.Run(ctx, func(context.Context, *tenure.Term) error { // the term's row is what matters
			cancel()
			return nil
		})
		cancel()
	}
	if err := node.Close(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.exec("DELETE FROM {node_history}")
	for _, role := range roles {
		every := everySeconds(role)
		w.exec(insertTerms, role, min(terms, 604_800/every), every, 2)
		w.exec(moveLast, role)
	}
}

// seed fills an installation with what one that has run for a week looks like.
func seed(w *world) {
	every := map[string]int{"scheduler": 21_600, "metrics-aggregator": 40_000, "reports": 9_000}
	w.past(1000, func(role string) int { return every[role] }, "scheduler", "metrics-aggregator", "reports")
	busy := func(percent float64) tenure.Config {
		return tenure.Config{Load: func() tenure.Load { return tenure.Load{CPU: percent, Memory: 41, Connections: 12, InFlight: 3} }}
	}
	first := w.node(w.backend, "api-1", busy(37))
	w.campaign(first, "scheduler", "metrics-aggregator")
	w.leads(first, "scheduler")
	w.leads(first, "metrics-aggregator")
	second := w.node(w.backend, "api-2", busy(64))
	w.campaign(second, "reports", "log-compactor")
	w.leads(second, "log-compactor")
	w.leads(second, "reports")
	w.campaign(w.node(w.backend, "api-3", busy(12)), "scheduler", "reports", "log-compactor", "metrics-aggregator")
	w.crash("api-4", 12, first, second)
	w.samples(first, second)
	w.exec(`UPDATE {nodes} SET version = '1.8.2', labels = '{"zone": "b"}'`)
	for i, name := range []string{"invoices", "search-index", "webhooks"} {
		w.exec(`INSERT INTO {processors} (name, kind, role, status, processed, node_name, errors, last_error)
			VALUES ($1, 'view', 'key:1', $2, $3, 'api-1', $4, $5)`,
			name, []string{"active", "paused", "failed"}[i], 184_220+i*911, i*4, []string{"", "", "the receiver answered 500"}[i])
	}
	w.exec(`INSERT INTO {processor_lags} (processor, behind, behind_more, held, measured_at)
		SELECT name, errors * 105, false, 0, now() FROM {processors}`)
	w.exec(`UPDATE {processors} p SET role = t.role, term = t.term, node_id = t.node_id FROM {terms} t WHERE t.role = 'scheduler'`)
	for i, name := range []string{"nightly-report", "rotate-keys"} {
		w.exec(`INSERT INTO {schedules} (name, role, expression, timezone, paused) VALUES ($1, 'scheduler', $2, 'Europe/Berlin', $3)`,
			name, []string{"30 2 * * *", "*/15 * * * *"}[i], i == 1)
		w.exec(`INSERT INTO {runs} (schedule, scheduled_for, state, node_name, started_at, ended_at)
			VALUES ($1, date_trunc('hour', now()), 'succeeded', 'api-1', now(), now())`, name)
	}
	w.exec(`INSERT INTO {runs} (schedule, scheduled_for, state, node_name, started_at, ended_at, error, output)
		VALUES ('nightly-report', date_trunc('hour', now()) - interval '1 day', 'failed', 'api-2', now() - interval '4 s', now(), 'exit status 3', 'cannot open <report>')`)
	w.exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, failed_at)
		SELECT 'webhooks', '7'::xid8, n, 'the receiver answered 400', 5, 1, now() FROM generate_series(1, 3) n`)
	w.exec(`UPDATE {schedules} s SET term = t.term FROM {terms} t WHERE t.role = s.role`)
}

// samples stores an hour of samples of nodes, with ten minutes in which none was written.
func (w *world) samples(nodes ...*tenure.Node) {
	w.Helper()
	now := time.Now()
	for minute := range 60 {
		if minute >= 20 && minute < 30 {
			continue
		}
		wave := math.Sin(float64(minute) / 7)
		for n, node := range nodes {
			sampletest.Insert(w.Installation, node.ID(), now.Add(-time.Duration(minute)*time.Minute), map[string]float64{
				"tenure_node_cpu_usage_ratio": 0.4 + 0.2*wave, "tenure_node_memory_usage_ratio": 0.41 + 0.002*float64(minute),
				"tenure_node_connections": 12, "tenure_node_jobs": float64(minute % 5), "tenure_node_in_flight": 3 + float64(n),
				"tenure_cluster_nodes active": 3, "tenure_cluster_nodes draining": 0, "tenure_cluster_nodes dead": 1,
				"tenure_cluster_mean_load": 0.38 + 0.1*wave, "tenure_cluster_highest_load": 0.6 + 0.2*wave, "tenure_cluster_connections": 24,
				"tenure_cluster_jobs": 4, "tenure_cluster_in_flight": 7, "tenure_leader_roles_led": 8,
			})
		}
	}
}

// crash has a node lead some roles, and crash; others take over.
func (w *world) crash(name string, roles int, others ...*tenure.Node) {
	w.Helper()
	wire, backend := w.wired()
	killed := w.node(backend, name, tenure.Config{})
	var led []string
	for i := range roles {
		led = append(led, fmt.Sprintf("tenant-%02d", i+1))
	}
	w.campaign(killed, led...)
	for _, role := range led {
		w.leads(killed, role)
	}
	for i, other := range others { // each waits for a share
		w.campaign(other, led[i*roles/len(others):(i+1)*roles/len(others)]...)
	}
	w.AwaitWatched(killed.ID())
	if err := wire.Close(); err != nil {
		w.Fatal(err)
	}
	for _, role := range led {
		w.Await("another node leads "+role, func() bool {
			leaders, err := w.Installation.Backend.Leaders(w.Context(), role)
			return err == nil && len(leaders) == 1 && leaders[0].NodeID != killed.ID()
		})
	}
}
