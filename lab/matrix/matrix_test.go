package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCountCountsTestsWithoutSubtests(t *testing.T) {
	events := `
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/MariaDB"}
{"Action":"pass","Test":"TestA/MariaDB"}
{"Action":"run","Test":"TestA/SQLite"}
{"Action":"output","Test":"TestA/SQLite","Output":"got 1, want 2\n"}
{"Action":"fail","Test":"TestA/SQLite"}
{"Action":"fail","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"skip","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"fail"}
`
	got, outputs, err := count(strings.NewReader(events), "")
	if want := (result{passed: 1, failed: 2, skipped: 1}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if outputs["TestA/SQLite"] != "got 1, want 2\n" {
		t.Errorf("got the outputs %q", outputs)
	}
	if text := got.String(); text != "1, **2 failed**, 1 skipped" {
		t.Errorf("got %q", text)
	}
	got, _, err = count(strings.NewReader(events), "/MariaDB")
	if want := (result{passed: 1, failed: 2}); err != nil || got != want {
		t.Errorf("of MariaDB: got %+v, %v, want %+v", got, err, want)
	}
}

func TestRowReplacesTheLastOfItsServerAndMode(t *testing.T) {
	day := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	table := ""
	for _, r := range []row{
		{"PostgreSQL 14", "14.1", "sessions", map[string]string{"conformance": "7", "doctor": "3"}, day},
		{"PostgreSQL 14", "14.1", "leases", map[string]string{"conformance": "8"}, day},
		{"PostgreSQL 14", "14.2", "sessions", map[string]string{"conformance": "9"}, day.AddDate(0, 0, 1)},
	} {
		table = withRow(table, r)
	}
	const want = `| server | version | mode | conformance | backend | acceptance | doctor | managed | last run |
|---|---|---|---|---|---|---|---|---|
| PostgreSQL 14 | 14.2 | sessions | 9 | – | – | 3 | – | 2030-01-03 |
| PostgreSQL 14 | 14.1 | leases | 8 | – | – | – | – | 2030-01-02 |`
	if table != want {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
}

func TestChooseRefusesUnknownServers(t *testing.T) {
	if _, err := choose([]string{"14", "9"}); err == nil || !strings.Contains(err.Error(), "mariadb") {
		t.Errorf("got %v", err)
	}
	if chosen, err := choose([]string{"sqlite", "14"}); err != nil || len(chosen) != 2 || chosen[0].name != "sqlite" {
		t.Errorf("got %v, %v", chosen, err)
	}
}

func TestProxyLineReplacesTheLastOfItsWay(t *testing.T) {
	day := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	p := proxy{title: "HAProxy"}
	tcp, other := way{mode: "sessions", faults: "SIGKILL"}, way{mode: "leases", faults: "–"}
	table := ""
	for _, added := range []struct {
		way     way
		version string
		result  result
	}{
		{tcp, "2.0", result{passed: 4}},
		{other, "2.0", result{passed: 2}},
		{tcp, "2.1", result{passed: 3, failed: 1}},
	} {
		table = withProxyLine(table, p, added.way, proxyLine(p, added.way, added.version, "15.1", added.result, day))
	}
	const want = proxyHeader + `
| HAProxy | 2.1 | 15.1 | sessions | SIGKILL | 3, **1 failed** | 2030-01-02 |
| HAProxy | 2.0 | 15.1 | leases | – | 2 | 2030-01-02 |`
	if table != want {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
}

func TestChooseRefusesUnknownProxies(t *testing.T) {
	if err := command(t.Context(), []string{"-proxies", "nginx"}); err == nil || !strings.Contains(err.Error(), "pgbouncer") {
		t.Errorf("got %v", err)
	}
	if chosen, err := chooseProxies([]string{"pgpool"}); err != nil || len(chosen) != 1 || chosen[0].title != "Pgpool-II" {
		t.Errorf("got %v, %v", chosen, err)
	}
}

func TestFlagsOfGoTestReachTheBinary(t *testing.T) {
	got := testFlags([]string{"-v", "-run", "TestA", "--count=2", "-test.short"})
	if want := []string{"-test.v", "-test.run", "TestA", "-test.count=2", "-test.short"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Pgpool-II prints its version to standard error.
func TestVersionOfProxyIsReadFromBothOutputs(t *testing.T) {
	for _, script := range []string{"echo proxy 1.2.3", "echo proxy 1.2.3 >&2"} {
		p := proxy{title: "proxy", version: []string{"sh", "-c", script}}
		if got, err := p.installed(t.Context()); err != nil || got != "1.2.3" {
			t.Errorf("%s: got %q, %v", script, got, err)
		}
	}
}
