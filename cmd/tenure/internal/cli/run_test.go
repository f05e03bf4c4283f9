package cli

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/database"
	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/program/console"
)

// place is the installation of a test's elections.
type place struct {
	server *pgtest.Server
	schema string
}

func newPlace(t testing.TB) place {
	t.Helper()
	server := pgtest.Shared(t)
	return place{server, server.Schema(t)}
}

// installation is the place for Go code.
func (p place) installation(t testing.TB) *postgrestest.Installation {
	t.Helper()
	return postgrestest.On(t, p.server, p.schema)
}

// with completes a command line.
func (p place) with(args ...string) []string {
	return append(args, "--dsn", p.server.DSN(), "--schema", p.schema)
}

// run launches "tenure run" that prints JSON.
func (p place) run(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, p.with(append([]string{"run", "-o", "json"}, args...)...)...)
}

// terminate ends the session of a role's leader as an administrator would.
func (p place) terminate(t *testing.T, role string) {
	t.Helper()
	var status roles.StatusRecord
	invoke(t, p.with("status", "--role", role, "-o", "json")...).want(t, console.ExitDone).decode(t, &status)
	if len(status.Roles) != 1 || len(status.Roles[0].Sessions) != 1 {
		t.Fatalf("not one session: %+v", status)
	}
	_, err := p.server.Conn(t).Exec(t.Context(), "SELECT pg_terminate_backend($1)", status.Roles[0].Sessions[0].PID)
	if err != nil {
		t.Fatal(err)
	}
}

// The help says the level that applies: commands are logged.
func TestHelpSaysDefaultLogLevel(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"run": "with a command the default is info", "cron run": `debug, info, warn or error (default "info")`,
		"acquire": `debug, info, warn or error (default "error")`, "serve": `debug, info, warn or error (default "warn")`,
	} {
		help := invoke(t, append(strings.Fields(command), "--help")...).want(t, console.ExitDone).stdout
		if !strings.Contains(help, want) {
			t.Errorf("%s --help lacks %q:\n%s", command, want, help)
		}
	}
}

// Of three processes one leads. Each time it is killed, another one leads with
// a larger term number.
func TestStandbyTakesOverWhenLeaderIsKilled(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	var nodes []*process
	for _, name := range []string{"one", "two", "three"} {
		nodes = append(nodes, place.run(t, "--role", "billing", "--name", name))
	}
	last := int64(0)
	for len(nodes) > 0 {
		leader, acquired := awaitAny(t, "acquired", nodes...)
		if acquired.term() <= last {
			t.Errorf("term %d after term %d", acquired.term(), last)
		}
		last = acquired.term()
		nodes = slices.DeleteFunc(nodes, func(p *process) bool { return p == leader })
		leader.signal(syscall.SIGKILL)
		if code := leader.exit(); code != -1 {
			t.Errorf("exit code %d of a killed process", code)
		}
	}
}

// On SIGTERM and SIGINT the role is released, then the election stops, then the
// process exits with 0.
func TestSignalReleasesRoleBeforeExit(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			place := newPlace(t)
			node := place.run(t, "--role", "billing", "--name", "one")
			first := node.await("acquired")
			node.signal(signal)
			rest := node.rest()
			if code := node.exit(); code != console.ExitDone {
				t.Errorf("exit code %d", code)
			}
			want := []string{"leader>releasing", "releasing>stopped", "released", "stopped"}
			got := slices.DeleteFunc(kinds(rest), func(kind string) bool { return kind == "acquiring>leader" })
			if !slices.Equal(got, want) {
				t.Errorf("events %v, want %v", got, want)
			}
			for _, e := range append(rest, first) {
				at := e.time(t)
				if age := time.Since(at); age < 0 || age > time.Minute {
					t.Errorf("%v is of %v", e, at)
				}
				if text := e["time"].(string); len(text) != len("2006-01-02T15:04:05.000000000Z") {
					t.Errorf("the time %s has no nanoseconds", text)
				}
				if _, err := uuid.Parse(e["node"].(string)); err != nil || e["node"] != first["node"] {
					t.Errorf("node %v", e["node"])
				}
				if e["role"] != "billing" || e["node_name"] != "one" {
					t.Errorf("role %v, node_name %v", e["role"], e["node_name"])
				}
				if e["event"] != "stopped" && (e.term() == 0 || e.term() != first.term()) {
					t.Errorf("term %v in %v", e["term"], e)
				}
			}
		})
	}
}

// One process leads all the roles that it was given, by name and by key, each
// under its name.
func TestOneProcessLeadsSeveralRoles(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for _, test := range []struct {
		args  []string
		roles []string
	}{
		{[]string{"--role", "a", "--role", "b"}, []string{"a", "b"}},
		{[]string{"--key", "-7", "--key", "0x464F52470009"}, []string{"key:-7", "key:77306496745481"}},
		{[]string{"--key1", "-1234", "--key2", "5678"}, []string{"key:-1234:5678"}},
		{[]string{"--role", "key:8", "--role", "key:8:9"}, []string{"key:8", "key:8:9"}},
	} {
		node := place.run(t, test.args...)
		var led []string
		for range test.roles {
			led = append(led, node.await("acquired")["role"].(string))
		}
		slices.Sort(led)
		if !slices.Equal(led, test.roles) {
			t.Errorf("%v leads %v, want %v", test.args, led, test.roles)
		}
	}
}

// A node with all flags works.
func TestRunAcceptsEveryFlag(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--name", "one", "--prefix", "other_", "--lease", "5.0", "--health-interval", "1.5",
		"--margin", "0.5", "--check-interval", "2s", "--lock-timeout", "3s", "--fence-timeout", "1s", "--stop-timeout", "2s",
		"--settle", "0", "--failover-wait", "0", "--retry-base", "0.1", "--retry-max", "1.0", "--reconnect-grace", "2.5",
		"--no-auto-reacquire", "--require-node-role", "scheduler", "--prefer", "zone=a",
		"--priority", "-3", "--take-over-after", "2m", "--log-level", "info", "--log-format", "json")
	node.await("acquired")
	node.signal(syscall.SIGTERM)
	node.await("stopped")
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(node.log(), `{"time":`) || !strings.Contains(node.log(), `"msg":"session opened"`) {
		t.Errorf("no log in JSON: %s", node.log())
	}
	var version database.SchemaRecord
	invoke(t, place.with("migrate", "version", "--prefix", "other_", "-o", "json")...).want(t, console.ExitDone).decode(t, &version)
	if version.SchemaVersion == 0 || version.Prefix != "other_" {
		t.Errorf("%+v", version)
	}
}

// A leader whose session an administrator terminates reports the loss and leads
// again.
func TestLostRoleIsReacquired(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing")
	first := node.await("acquired")
	place.terminate(t, "billing")
	if lost := node.await("lost"); lost.term() != first.term() || lost["error"] == nil {
		t.Errorf("%v", lost)
	}
	if again := node.await("acquired"); again.term() <= first.term() {
		t.Errorf("term %d after %d", again.term(), first.term())
	}
}

// Within the grace time a loss is not reported, and the recovered role is a new
// term.
func TestReconnectGraceSuppressesLossEvent(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--reconnect-grace", "20")
	first := node.await("acquired")
	place.terminate(t, "billing")
	if e := node.await("state_change"); e["to"] != "reconnecting" {
		t.Fatalf("%v", e)
	}
	e, _ := node.next()
	if e["event"] != "state_change" || e["to"] != "leader" || e.term() <= first.term() {
		t.Errorf("%v", e)
	}
}

// After a loss the elections stop, and the process exits with an error when it has
// reported them all.
func TestNoAutoReacquireStopsAfterLoss(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--role", "reports", "--no-auto-reacquire")
	node.await("acquired")
	node.await("acquired")
	place.terminate(t, "billing")
	for range 2 {
		node.await("lost")
	}
	if code := node.exit(); code != console.ExitDatabase {
		t.Errorf("exit code %d, want %d", code, console.ExitDatabase)
	}
	if !strings.Contains(node.log(), " was lost: ") {
		t.Errorf("the loss is not reported: %s", node.log())
	}
}

// With a command, the process exits with an error after a loss, and with 0 after a
// step-down.
func TestNoAutoReacquireOfCommandReportsLoss(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*testing.T, place)
		code int
	}{
		"loss":      {func(t *testing.T, p place) { p.terminate(t, "billing") }, console.ExitDatabase},
		"step-down": {func(t *testing.T, p place) { p.stepDown(t, "--timeout", "5s") }, console.ExitDone},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "step-down" {
				pgtest.Long(t)
			}
			t.Parallel()
			place := newPlace(t)
			node := launch(t, place.guarded("echo leading; exec sleep 600", "--no-auto-reacquire")...)
			if line, _ := node.line(); line != "leading" {
				t.Fatalf("the command printed %q", line)
			}
			test.end(t, place)
			if code := node.exit(); code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, node.log())
			}
		})
	}
}

// A database that cannot be reached is tried again, as often as the retry flags
// say, until a signal.
func TestRunRetriesUnreachableDatabase(t *testing.T) {
	t.Parallel()
	node := launch(t, "run", "--role", "billing", "--dsn", "postgres://u:"+secret+"@127.0.0.1:1/db",
		"--retry-base", "0.01", "--retry-max", "0.02", "--log-format", "json")
	node.awaitLog(`"attempt":3`)
	node.signal(syscall.SIGTERM)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(node.log(), secret) {
		t.Errorf("the password is shown: %s", node.log())
	}
}

func TestTextOutputHasOneLinePerEvent(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := launch(t, place.with("run", "--role", "billing")...)
	for {
		line, ok := node.line()
		if !ok {
			t.Fatal("ended")
		}
		if strings.Contains(line, "  billing  acquired  term 1") {
			break
		}
	}
	node.signal(syscall.SIGINT)
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

// A role that other nodes lead with another lock key is refused.
func TestRoleWithAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	invoke(t, place.with("acquire", "--role", "billing")...).want(t, console.ExitDone)
	terms := pgx.Identifier{place.schema, "tenure_terms"}.Sanitize()
	pgtest.Exec(t, place.server.Conn(t), "UPDATE "+terms+" SET lock_key = '7'")
	for _, command := range []string{"run", "acquire"} {
		got := invoke(t, place.with(command, "--role", "billing", "--log-level", "error")...).want(t, console.ExitUsage)
		if !strings.Contains(got.stderr, "another lock key") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%s: %s", command, got.stderr)
		}
	}
}

// A second signal, while the first one waits for a database that does not
// answer, ends the process immediately.
func TestSecondSignalEndsProcessImmediately(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--lease", "1m")
	node.await("acquired")
	place.freeze(t)
	node.signal(syscall.SIGTERM)
	if e := node.await("state_change"); e["to"] != "releasing" {
		t.Fatalf("%v", e)
	}
	again := time.NewTicker(50 * time.Millisecond) // the first repetitions count as the first signal
	defer again.Stop()
	for ended := false; !ended; {
		select {
		case <-again.C:
			node.signal(syscall.SIGTERM)
		case <-node.done:
			ended = true
		}
	}
	if code := node.exit(); code != -1 {
		t.Errorf("exit code %d", code)
	}
}

// freeze stops the server process of the session that holds the role billing,
// until the end of the test.
func (p place) freeze(t *testing.T) {
	t.Helper()
	backend := p.status(t, "--role", "billing").Roles[0].Sessions[0].PID
	pgtest.PauseBackend(t, p.server.DSN(), backend, "ClientRead")
}

// If the database does not answer, a graceful end takes at most a lease.
func TestGracefulEndIsBoundedByLease(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	place := newPlace(t)
	node := place.run(t, "--role", "billing", "--lease", "3s") // statements may take half a second
	node.await("acquired")
	place.freeze(t)
	node.signal(syscall.SIGTERM)
	want := []string{"leader>releasing", "releasing>stopped", "error", "stopped"}
	if got := kinds(node.rest()); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if code := node.exit(); code != console.ExitDone {
		t.Errorf("exit code %d", code)
	}
}
