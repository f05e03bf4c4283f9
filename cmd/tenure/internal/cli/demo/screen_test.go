package demo

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/program/console"
)

// The screen shows the leader and the latest failovers.
func TestDemoScreenShowsLeaderAndFailovers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	one := &demoSlot{name: "node-1", state: "LEADER", since: now}
	show := &demoShow{slots: []*demoSlot{one}, leader: one, term: 1795347000042, next: now.Add(time.Second)}
	screen := &demoScreen{database: "PostgreSQL 15.18"}
	render := func(width int) string {
		return (&console.Output{}).Render(width, func(page *console.Page) { screen.fill(page, show, now) })
	}
	first := render(80)
	for _, want := range []string{"PostgreSQL 15.18", "node-1", "LEADER", "node-1 leads term …000042 ", "no failovers"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	show.leader = nil
	for i := range int64(20) {
		show.failovers = append(show.failovers, failover{from: "node-1", to: "node-2", term: i, took: time.Duration(i) * time.Millisecond})
	}
	second := render(80)
	for _, want := range []string{"No node leads", "20 failovers: median 9.5 ms, fastest 0.0 ms, slowest 19.0 ms", "term 19 "} {
		if !strings.Contains(second, want) {
			t.Errorf("%q is not in\n%s", want, second)
		}
	}
	if strings.Contains(second, "term 11 ") {
		t.Error("old failovers are still listed")
	}
	if narrow := render(20); !strings.HasPrefix(narrow, "Tenure: 3 nodes on …\n") {
		t.Errorf("not cut to the terminal: %q", narrow)
	}
}

// Without failovers there are no figures.
func TestSummaryInJSONOmitsMissingFigures(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(newSummary(nil))
	if err != nil || !strings.Contains(string(text), `"failovers":0,"median_seconds":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

// No other user of the machine can connect to the superuser of the
// demonstration's server, and no command line contains a secret.
func TestDemoIsPrivate(t *testing.T) {
	t.Parallel()
	database, err := newDemoDatabase(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := database.close(); err != nil {
			t.Error(err)
		}
	}()
	config, err := pgx.ParseConfig(database.dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var addresses string
	if err := conn.QueryRow(t.Context(), "SHOW listen_addresses").Scan(&addresses); err != nil || addresses != "" {
		t.Errorf("it listens on %q: %v", addresses, err)
	}
	if tcp, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", config.Port)); err == nil {
		_ = tcp.Close()
		t.Error("it takes connections over TCP")
	}
	private := false
	for directory := config.Host; directory != "/" && directory != os.TempDir(); directory = filepath.Dir(directory) {
		info, err := os.Stat(directory)
		if err != nil {
			t.Fatal(err)
		}
		private = private || info.Mode().Perm()&0o077 == 0
	}
	if !private {
		t.Errorf("every user can reach the socket in %s", config.Host)
	}
	if config.Password != "" {
		t.Error("the password would be on the command lines of the nodes")
	}
}
