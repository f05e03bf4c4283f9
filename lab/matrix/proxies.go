package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/exactly-one/tenure/internal/docpage"
)

// proxy is a program between the nodes and PostgreSQL.
type proxy struct {
	name  string // as an argument names it
	title string // as the page names it
	// version is the command that prints the version; nil for a proxy of the tests.
	version []string
	ways    []way
}

// way is how nodes connect through a proxy, and what is tested then.
type way struct {
	mode   string // of the nodes, and of the proxy
	faults string // of the proxy
	suites []suite
}

const acceptance = "internal/acceptance"

// survive are the faults of a pooler under leases.
func survive(pooler string) suite {
	return suite{module: ".", folder: acceptance, run: "^TestLeasesSurvivePoolerFailures$/^" + pooler, count: "/" + pooler, long: true}
}

var proxies = []proxy{
	{"haproxy", "HAProxy", []string{"haproxy", "-v"}, []way{
		{"sessions, TCP mode", "SIGKILL, SIGSTOP, reload, restart", []suite{{module: ".", folder: acceptance, run: "^TestLeaderBehindHAProxyLosesRoleWithProxy$", long: true}}},
	}},
	{"pgbouncer", "PgBouncer", []string{"pgbouncer", "--version"}, []way{
		{"sessions are refused, in all three pool modes", "–", []suite{{module: ".", folder: acceptance, run: "^TestPgBouncerIsRejected$", long: true}}},
		{"leases, session and transaction pooling", "SIGKILL, SIGSTOP, restart", []suite{survive("PgBouncer"), {module: shared, folder: dialects, run: "^Test(Backend|Store)Conformance$/^PgBouncer$", count: "/PgBouncer"}}},
		{"leases are refused, statement pooling", "–", []suite{{module: shared, folder: dialects, run: "^TestBackendRefusesStatementPooling$"}}},
	}},
	{"pgpool", "Pgpool-II", []string{"pgpool", "--version"}, []way{
		{"sessions are refused, in all clustering modes", "SIGKILL, SIGSTOP, restart", []suite{
			{module: ".", folder: acceptance, run: "^TestPgpoolIsRejectedAfterItsRestart$", long: true},
			{module: ".", folder: "postgres", run: "^TestPgpoolIsRefused$"},
		}},
		{"leases, four clustering modes", "SIGKILL, SIGSTOP, restart", []suite{survive("Pgpool-II")}},
		{"leases are refused, raw mode", "–", []suite{{module: shared, folder: dialects, run: "^TestBackendRefusesRawPgpool$"}}},
	}},
	{"half-open", "TCP proxy of the tests", nil, []way{
		{"sessions", "it keeps one side open when the other has closed", []suite{{module: ".", folder: acceptance, run: "^TestHalfOpenProxyDelaysTakeoverWithinBounds$", long: true}}},
	}},
}

const proxyHeader = "| proxy | version | PostgreSQL | nodes and proxy | faults of the proxy | tests | last run |\n|---|---|---|---|---|---|---|"

// proxyLine is a row of the table of proxies.
func proxyLine(p proxy, w way, version, server string, r result, at time.Time) string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", p.title, version, server, w.mode, w.faults, r, at.UTC().Format(time.DateOnly))
}

// withProxyLine returns the table with a row, in place of the last one for the same
// proxy and way.
func withProxyLine(table string, p proxy, w way, line string) string {
	return docpage.SetLine(table, proxyHeader, line, func(old string) bool {
		return docpage.HasFirst(p.title)(old) && strings.Contains(old, " | "+w.mode+" | ")
	})
}

// chooseProxies returns the proxies with the names, all of them if there are none.
func chooseProxies(wanted []string) ([]proxy, error) {
	if len(wanted) == 0 {
		return proxies, nil
	}
	var chosen []proxy
	for _, name := range wanted {
		i := slices.IndexFunc(proxies, func(p proxy) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no proxy %q; proxies: %s", name, strings.Join(proxyNames(), " "))
		}
		chosen = append(chosen, proxies[i])
	}
	return chosen, nil
}

func proxyNames() []string {
	var all []string
	for _, p := range proxies {
		all = append(all, p.name)
	}
	return all
}

func (p proxy) installed(ctx context.Context) (string, error) {
	if p.version == nil {
		return "–", nil
	}
	// Pgpool-II prints its version to standard error.
	path := "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"
	text, err := output(ctx, ".", "env", append([]string{path, "sh", "-c", `exec "$@" 2>&1`, "sh"}, p.version...)...)
	if err != nil {
		return "", err
	}
	version := regexp.MustCompile(`[0-9]+(\.[0-9]+)+`).FindString(text)
	if version == "" {
		return "", fmt.Errorf("%s: no version in %q", p.title, text)
	}
	return version, nil
}

// runProxies runs the suites behind proxies, and returns an error if a test failed.
func runProxies(ctx context.Context, r *runner, chosen []proxy, page string) error {
	database, err := found(ctx, "TENURE_PG_BIN="+os.Getenv("TENURE_PG_BIN"))
	if err != nil {
		return err
	}
	failed := 0
	for _, p := range chosen {
		version, err := p.installed(ctx)
		if err != nil {
			return err
		}
		for _, w := range p.ways {
			began, sum := time.Now(), result{}
			for _, u := range w.suites {
				counted, err := r.run(ctx, u, database.environment)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.title, w.mode, err)
				}
				sum = result{sum.passed + counted.passed, sum.failed + counted.failed, sum.skipped + counted.skipped}
			}
			fmt.Printf("%s %s, %s: %s (%.0f s)\n", p.title, version, w.mode, sum, time.Since(began).Seconds())
			failed += sum.failed
			if page == "" {
				continue
			}
			line := proxyLine(p, w, version, database.version, sum, time.Now())
			if err := docpage.Update(page, "test-proxies", func(table string) string { return withProxyLine(table, p, w, line) }); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	return nil
}
