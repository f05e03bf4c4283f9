//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/lab/chaos/check"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
	"github.com/exactly-one/tenure/postgres"
)

func TestEveryKindCanBeMade(t *testing.T) {
	for _, k := range script.Kinds {
		if injections[k.Name] == nil {
			t.Errorf("%s has no injection", k.Name)
		}
	}
	for name := range injections {
		if _, found := script.Find(name); !found {
			t.Errorf("no script can name %s", name)
		}
	}
}

func TestKindsAreChosenByName(t *testing.T) {
	available := []script.Kind{script.Kinds[0], script.Kinds[1]}
	for names, want := range map[string]string{
		"": "kill,terminate", "terminate": "terminate", "terminate,kill": "terminate,kill",
		"explode": `no kind of fault "explode"`, "kill,freeze": "freeze cannot be made here",
	} {
		kinds, err := choose(available, names)
		var got []string
		for _, k := range kinds {
			got = append(got, k.Name)
		}
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && strings.Join(got, ",") != want {
			t.Errorf("%q: got %v, %v; want %s", names, got, err, want)
		}
	}
}

// A process of a killed server that does not end on its own, here because it is stopped,
// does not keep the server from starting again.
func TestKilledServerStartsBesideProcessThatStays(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
	box, err := pgserver.NewSandbox()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	server, err := box.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the server has been killed
	if _, err := conn.Exec(t.Context(), "CREATE TABLE chaos_load (filler text)"); err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Signal(int(conn.PgConn().PID()), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b := &bed{server: server, admin: server.DSN()}
	end, _, err := killServer(t.Context(), b, nil, script.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if err := end(t.Context()); err != nil {
		t.Error(err)
	}
}

// The witness of a refused migration is gone before it can leave, because the server crashes:
// the other nodes wait for it no longer than for each other.
func TestNodesDoNotWaitLongForWitness(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make deep runs it")
	}
	const lease, patience = 4 * time.Second, 30 * time.Second
	box, err := pgserver.NewSandbox()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	server, err := box.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	backend, err := postgres.New(server.DSN(), postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	logs, err := os.Create(filepath.Join(t.TempDir(), "nodes.log"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{options: options{lease: lease}, server: server, admin: server.DSN(), backend: backend, logs: logs}
	node, err := tenure.Open(t.Context(), backend, tenure.Config{Lease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close(context.Background()) }) // what matters has been seen
	election, err := node.Election(tenure.NamedRole("role"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(election.Start(t.Context()), b.execute(t.Context(), "CREATE TABLE chaos_load (x text)")); err != nil {
		t.Fatal(err)
	}
	first, err := election.WaitForLeadership(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	refused := make(chan struct{})
	go func() { // ends when the migration is refused, or its connection is lost
		defer close(refused)
		_, _, _ = migrateDown(t.Context(), b, nil, script.Step{}) // the crash may end it
	}()
	joined := false
	until(t.Context(), patience, func() bool {
		err = b.asAdmin(t.Context(), func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM tenure_nodes WHERE name = $1)", requester).Scan(&joined)
		})
		return joined || err != nil
	})
	if err != nil || !joined {
		t.Fatalf("the witness has joined: %v, %v", joined, err)
	}
	end, _, err := killBackend(t.Context(), b, nil, script.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-refused
	<-first.Context().Done()
	limited, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := election.WaitForLeadership(limited); err != nil {
		t.Errorf("vacant for %v after a crash of the server, with a lease of %v: %v", patience, lease, err)
	}
}

// A run of two seconds with one kill, one vacancy and one violation.
func figuresOfARun() (*record.History, *check.Verdict) {
	h := &record.History{
		Start: 0, End: 2 * int64(time.Second), Begins: make([]record.Begin, 3), Writes: make([]record.Write, 5), Rejected: 1, Unknown: 2,
		Faults: []record.Fault{{Kind: "kill"}, {Kind: "drain", Failed: "the node has not joined"}},
	}
	v := &check.Verdict{
		Violations: []check.Violation{{Kind: check.Overlap}}, Excused: []time.Duration{3 * time.Millisecond},
		Gaps: []check.Gap{{Role: "role-01", Kind: "kill", Took: 1200 * time.Millisecond}},
	}
	return h, v
}

func TestStateAddsUpRuns(t *testing.T) {
	const begin, end = "<!-- written by make chaos -->\n", "<!-- end -->\n"
	directory := t.TempDir()
	c := &command{state: filepath.Join(directory, "state.json"), page: filepath.Join(directory, "page.md")}
	if err := os.WriteFile(c.page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, v := figuresOfARun()
	for range 2 {
		if err := c.saveRun(h, v); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(c.page)
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	for _, want := range []string{
		"before\n" + begin, end + "after\n", "Runs: 2, which took 4s. Faults: 2; not possible at their time: 2.", "Violations: 2.",
		"- 6 terms; 10 fenced writes acknowledged, 2 rejected; 4 statements without an answer",
		"- 2 overlaps", "the longest of 3ms", "| `kill` | process | SIGKILL of a node; another process takes its place | 2 | 2 | 1.2 s |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "old") || strings.Contains(page, "`drain`") {
		t.Errorf("the page has too much:\n%s", page)
	}
	if err := os.WriteFile(c.page, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.saveRun(h, v); err == nil || !strings.Contains(err.Error(), "lacks the lines") {
		t.Errorf("a page without marks: %v", err)
	}
}

func TestMovesMakeRolesEven(t *testing.T) {
	b := new(bed)
	for i, count := range []int{6, 0, 1, 9} {
		m := &member{number: i + 1, id: uuid.New(), connected: true, leads: map[string]record.Lead{}, turn: make(chan struct{}, 1)}
		for j := range count {
			m.leads[string(rune('a'+10*i+j))] = record.Lead{}
		}
		b.members = append(b.members, m)
	}
	defer take(b.members[3].turn)() // it has a fault
	var moved []string
	for _, request := range b.moves() {
		i := slices.IndexFunc(b.members, func(m *member) bool { return m.id == request.Target })
		moved = append(moved, request.Role+" to "+string(rune('0'+b.members[i].number)))
	}
	if want := []string{"f to 2", "e to 2", "d to 3"}; !slices.Equal(moved, want) {
		t.Errorf("moved %v; want %v", moved, want)
	}
	b.members[1].connected = false
	for _, request := range b.moves() {
		if request.Target == b.members[1].id {
			t.Error("a role moves to a node without a session")
		}
	}
}

// The sentence on the page never hides a violation.
func TestLineStatesViolations(t *testing.T) {
	f := newFigures()
	f.Servers, f.Runs, f.Last, f.Duration = []string{"PostgreSQL 14.23", "PostgreSQL 15.18"}, 2, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), 10*time.Minute
	f.Faults["kill"], f.Faults["cut"], f.Terms, f.Writes = 3, 4, 50, 900
	const begin = "On PostgreSQL 14.23, 15.18: 7 faults of 2 kinds in 10m0s (runs: 2), 50 terms and 900 acknowledged fenced writes; violations: "
	if got := f.line(); got != begin+"0 (2026-11-23, `make chaos`)." {
		t.Errorf("got %q", got)
	}
	f.Violations["overlap"] = 1
	if got := f.line(); got != begin+"**1** (2026-11-23, `make chaos`)." {
		t.Errorf("with a violation: got %q", got)
	}
}
