package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/cmd/tenure/internal/cli/roles"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/testkit"
)

// shown is what the commands show in a scenario.
type shown struct {
	*testing.T
	place place
}

// start starts a node that leads a role and has the same name.
func (s shown) start(name string) *process {
	s.Helper()
	node := s.place.run(s.T, "--role", name, "--name", name)
	node.await("acquired")
	return node
}

// text is the output of a command.
func (s shown) text(args ...string) string {
	s.Helper()
	return invoke(s.T, s.place.with(args...)...).want(s.T, console.ExitDone).stdout
}

// until reads a command until its output matches a pattern.
func (s shown) until(pattern string, args ...string) (text string) {
	s.Helper()
	wanted := regexp.MustCompile(pattern)
	testkit.AwaitNil(s, patience, func() error {
		if text = s.text(args...); !wanted.MatchString(text) {
			return fmt.Errorf("tenure %s does not show %q:\n%s", strings.Join(args, " "), pattern, text)
		}
		return nil
	})
	return text
}

// incidents are the incidents with a kind, the latest first.
func (s shown) incidents(kinds ...string) (sentences []string) {
	s.Helper()
	var seen roles.IncidentHistoryRecord
	invoke(s.T, s.place.with("history", "--incidents", "-o", "json")...).want(s.T, console.ExitDone).decode(s.T, &seen)
	for _, i := range seen.Incidents {
		if slices.Contains(kinds, i.Kind) {
			sentences = append(sentences, i.Kind+": "+i.Sentence)
		}
	}
	return sentences
}

// want checks a text with a pattern.
func (s shown) want(what, text, pattern string) {
	s.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		s.Errorf("%s: %s\nwant %s", what, text, pattern)
	}
}

// Each scenario causes something known. What the commands show agrees with it.
func TestShownIsWhatHappened(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]func(shown){
		"nodes that stop are not replaced":          nodesStop,
		"a death that no node observed has no time": deathUnobserved,
		"a crash loop names its cause and next try": crashLoop,
		"a command that ran once is at rest":        onceAtRest,
		"a restarted node leaves no ghost":          restartedNode,
		"a silent node did not crash":               silentNode,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(shown{t, newPlace(t)})
		})
	}
}

func nodesStop(s shown) {
	a, b := s.start("a"), s.start("b")
	for _, node := range []*process{a, b} {
		node.signal(syscall.SIGTERM)
		if code := node.exit(); code != 0 {
			s.Fatalf("a node ended with %d", code)
		}
	}
	got := strings.Join(s.incidents("shutdown", "deployment"), " ")
	s.want("incidents", got, `^shutdown: b stopped at [^.]*\. Its role b has no leader\. shutdown: a stopped at [^.]*\. Its role a has no leader\.$`)
}

func deathUnobserved(s shown) {
	s.start("a").signal(syscall.SIGKILL)
	s.until(`(has no session|a +vacant)`, "status")
	after := s.place.run(s.T, "--role", "a", "--name", "after")
	after.await("acquired")
	got := strings.Join(s.incidents("crash"), " ")
	s.want("incidents", got, `^crash: a crashed before [^.]*; no node observed it\. Its role a moved to after after at most [0-9.]+ m?s\.$`)
	var terms roles.TermHistoryRecord
	invoke(s.T, s.place.with("history", "-o", "json")...).want(s.T, console.ExitDone).decode(s.T, &terms)
	if terms.Terms[0].Vacant != nil || terms.Terms[0].Silent == nil {
		s.Errorf("%+v; want no vacancy, which no node observed", terms.Terms[0])
	}
}

func crashLoop(s shown) {
	const cause = "the command ended 2 times in a row, most recently with exit code 3"
	node := launch(s.T, s.place.guarded("exit 3", "--name", "w1", "--max-restarts", "1")...)
	node.awaitLog("leaving the role to other candidates")
	s.until(`(?s)no leader: billing.*w1 gave up billing at [^ ]+: `+cause+`\. It campaigns again at [^ ]+\.`, "status")
	s.until(`"last":{[^}]*"end_cause":"`+cause+`","next_by":"`, "status", "-o", "json")
	s.want("history", s.text("history"), `w1 gave up billing at [^ ]+: `+cause+`\.`)
	s.want("incidents", strings.Join(s.incidents("change"), " "), `^change: w1 gave up billing at [^ ]+: `+cause+`\. It (has no leader|moved to w1)`)
}

func onceAtRest(s shown) {
	invoke(s.T, s.place.guarded("exit 0", "--once", "--name", "one")...).want(s.T, console.ExitDone)
	status := s.place.status(s.T)
	if !status.Well || status.Roles[0].State != roles.StateAtRest || status.Summary != "No role needs a leader now: billing is at rest; there are no nodes." {
		s.Errorf("%+v; want a role at rest", status)
	}
	s.want("incidents", strings.Join(s.incidents("change", "deployment"), " "), `^change: one completed the work of billing at [^ ]+\.$`)

	invoke(s.T, s.place.guarded("exit 0", "--once", "--name", "one", "--next-within", "1s")...).want(s.T, console.ExitDone)
	s.until(`1 of 1 role has no leader: billing.*\n.*billing was completed at [^ ]+; its next run was due by `, "status")

	invoke(s.T, s.place.guarded("exit 4", "--once", "--name", "one")...).want(s.T, 4)
	s.want("status after a failure", s.text("status"), `no leader: billing.*\n.*one gave up billing at [^ ]+: done: the command ended with exit code 4\.`)
}

func restartedNode(s shown) {
	s.start("api").signal(syscall.SIGKILL)
	s.start("api")
	s.until(`api +[^ ]+ +replaced`, "node", "list")
	status := s.place.status(s.T)
	if !status.Well || status.Summary != "The role api is led; 1 node is alive." {
		s.Errorf("%+v; want no dead node", status)
	}
}

// A node whose heartbeats are not acknowledged closes its session when its trust window
// ends, before its lease expires: the server sees the connection end, as after a crash.
func silentNode(s shown) {
	leader := s.place.run(s.T, "--role", "billing", "--name", "leader", "--lease", "3s")
	leader.await("acquired")
	standby := s.place.run(s.T, "--role", "billing", "--name", "standby", "--lease", "3s")
	standby.await("acquire_failed")
	release := s.place.block(s.T, "leader")
	standby.await("acquired")
	release()
	s.until(`silence +1 .*leader fell silent at [^ ]+\. Its role billing moved to standby after [0-9.]+ s without a sign of life`, "history", "--incidents")
	s.want("history", s.text("history"), `leader .* lease_expired`)
	if all := s.incidents("crash"); len(all) > 0 {
		s.Errorf("%q; want no crash", all)
	}
}

// block locks the row of a node, so that no heartbeat of it is acknowledged.
func (p place) block(t *testing.T, node string) (release func()) {
	t.Helper()
	tx, err := p.server.Conn(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := pgx.Identifier{p.schema, "tenure_nodes"}.Sanitize()
	pgtest.Exec(t, tx, "SELECT FROM "+table+" WHERE name = $1 FOR UPDATE", node)
	return func() { _ = tx.Rollback(t.Context()) }
}

// A name that does not exist is not an outage: commands exit with 2 and suggest a name.
func TestUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	place.run(t, "--role", "billing", "--name", "api").await("acquired")
	for command, want := range map[string]string{
		"status --role biling":       `no node has ever been a candidate for the role: biling; did you mean "billing"?`,
		"history --role biling":      `no node has ever been a candidate for the role: biling; did you mean "billing"?`,
		"step-down --role biling":    `no node has ever been a candidate for the role: biling; did you mean "billing"?`,
		"status --role nope":         `no node has ever been a candidate for the role: nope`,
		"history --node apo":         `no such node: "apo"; did you mean "api"?`,
		"history --nodes --node apo": `no such node: "apo"; did you mean "api"?`,
	} {
		got := invoke(t, place.with(strings.Fields(command)...)...).want(t, console.ExitUsage)
		if got.stderr != "tenure: "+want+"\n" || got.stdout != "" {
			t.Errorf("%s: %s%s\nwant %s", command, got.stdout, got.stderr, want)
		}
	}
	invoke(t, place.with("status", "--role", "billing")...).want(t, console.ExitDone)
	invoke(t, place.with("history", "--node", "api")...).want(t, console.ExitDone)
}

// An alert on a metric that no node has would never fire.
func TestAlertOnUnknownMetricIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tenure.toml")
	const file = "[[alerts]]\nname = \"lost\"\ncondition = \"tenure_leader_connectd == 0\"\nseverity = \"critical\"\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	got := invoke(t, "config", "check", path).want(t, console.ExitUsage)
	if !strings.Contains(got.stderr, "there is no metric tenure_leader_connectd; did you mean tenure_leader_connected?") || strings.Contains(got.stdout, "no errors") {
		t.Errorf("config check: %s%s", got.stdout, got.stderr)
	}
	allowed := invoke(t, "config", "check", path, "--allow-unknown-metrics").want(t, console.ExitDone)
	if !strings.Contains(allowed.stdout, "there is no metric tenure_leader_connectd") {
		t.Errorf("config check with the flag: %s", allowed.stdout)
	}
}
