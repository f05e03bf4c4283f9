//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/console"
	"github.com/exactly-one/tenure/internal/program/record"
	"github.com/exactly-one/tenure/processor"
)

var (
	// examplePrograms are programs that the documents run in the current folder. Scripts end
	// immediately, and so do the ones of oneShot; the others run until a signal.
	examplePrograms = regexp.MustCompile(`(?:^|\s|')\./([a-z-]+(?:\.sh)?)`)
	oneShot         = regexp.MustCompile(`\.sh$|^one-piece$|^only-on-the-leader$`)
	// otherPrograms represent programs that the documents name and that are no part of Tenure.
	otherPrograms = map[string]string{"java": untilSignal, "python": untilSignal, "aws": "echo secret"}
)

const untilSignal = "echo works; exec sleep 1000"

// exampleFile is the configuration file that the documents name.
const exampleFile = `[[alerts]]
name = "no_leader"
condition = "sum(tenure_leader_is_leader{role='billing'}) == 0"
annotations = { summary = "no leader" }
notify = ["slack:#ops"]
[alerts.notifications.slack]
url = "URL"
[[cron]]
name = "backup"
schedule = "0 0 29 2 *"
command = "true"
`

// servesHTTP matches blocks that ask a server.
var servesHTTP = regexp.MustCompile(`(localhost|127\.0\.0\.1):8080/`)

// needs are the parts of an installation that blocks use, by what the blocks say.
var needs = []struct {
	mentions *regexp.Regexp
	add      func(*stage)
}{
	{regexp.MustCompile(`tenure (node|step-down|role|history|status|cluster)|/v1/(nodes|leaders|elections)`), (*stage).addNodes},
	{regexp.MustCompile(`tenure cron (list|history|next [a-z]|trigger|backfill|pause|resume|change|add|reset|remove)|/v1/schedules`), (*stage).addSchedule},
	{regexp.MustCompile(`tenure processor|/v1/processor`), (*stage).addProcessors},
	{regexp.MustCompile(`tenure alerts|tenure audit`), (*stage).addAlert},
	{regexp.MustCompile(`tenure rebalance`), (*stage).addSpread},
}

// newStage returns a stage with what a block mentions.
func newStage(t *testing.T, text string, bare bool) *stage {
	t.Helper()
	s := &stage{T: t, place: newPlace(t), folder: t.TempDir()}
	s.prepare(text)
	invoke(t, s.place.with("migrate", "up", "--feature", "all")...).want(t, console.ExitDone)
	port := fmt.Sprint("127.0.0.1:", freePort(t))
	s.replace("localhost:8080", port, "127.0.0.1:8080", port, "0.0.0.0:8080", port, " :8080", " "+port,
		" :5433", fmt.Sprint(" 127.0.0.1:", freePort(t)), " :8081", fmt.Sprint(" 127.0.0.1:", freePort(t)))
	if !bare && servesHTTP.MatchString(text) {
		s.addServer(text)
	}
	for _, need := range needs {
		if !bare && need.mentions.MatchString(text) {
			need.add(s)
		}
	}
	return s
}

// prepare writes the programs and the files.
func (s *stage) prepare(text string) {
	s.Helper()
	bin := filepath.Join(s.folder, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		s.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "tenure"))
	}
	if err != nil {
		s.Fatal(err)
	}
	write := func(name, content string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte(content), mode); err != nil {
			s.Fatal(err)
		}
	}
	for name, script := range otherPrograms {
		write("bin/"+name, "#!/bin/sh\n"+script+"\n", 0o700)
	}
	for _, match := range examplePrograms.FindAllStringSubmatch(text, -1) {
		script := untilSignal
		if oneShot.MatchString(match[1]) {
			script = "echo works"
		}
		write(match[1], "#!/bin/sh\n"+script+"\n", 0o700)
	}
	write("token", "0123456789abcdef0123456789abcdef\n", 0o600)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	s.Cleanup(receiver.Close)
	write("tenure.toml", strings.Replace(exampleFile, "URL", receiver.URL, 1), 0o600)
	dsn := "'" + s.place.server.DSN() + "'"
	s.replace("postgres://app@db/app", dsn, "postgres://app@localhost/app", dsn, "--dsn …", "--dsn "+dsn,
		"/etc/tenure/", "", "/run/tenure/", "", "/usr/local/share/man/man1", "man1", "forge.toml", "tenure.toml",
		"*/10 * * * *  ", "", "sleep 30", "sleep 0")
}

// replace makes this stage use something else than the documents do in their examples.
func (s *stage) replace(oldnew ...string) { s.replacements = append(s.replacements, oldnew...) }

// addNodes starts two nodes, which campaign for the roles of the examples, and kills a third one.
func (s *stage) addNodes() {
	s.Helper()
	start := func(name string) *process {
		return s.place.run(s.T, "--name", name, "--role", "billing", "--role", "reports")
	}
	dead := start("old-1")
	dead.await("acquired")
	dead.signal(syscall.SIGKILL)
	first := start("api-1")
	first.await("acquired")
	start("api-2").await("state_change")
	seen := s.place.awaitCluster(s.T, "two nodes and a dead one", func(c record.Cluster) bool { return c.Counts.Dead == 1 && c.Counts.Active >= 2 })
	id := nodeNamed(s.T, seen, "api-1").ID.String()
	s.replace("forget 3f2a91c0", "forget "+nodeNamed(s.T, seen, "old-1").ID.String(), " 3f2a ", " "+id+" ")
}

// addServer starts a node that serves HTTP, or tenure serve if the block asks for schedules or processors.
func (s *stage) addServer(text string) {
	s.Helper()
	if strings.Contains(text, "/v1/schedules") {
		served(launch(s.T, s.place.with("serve", "--listen", s.adapt("localhost:8080"), "--token-file", filepath.Join(s.folder, "token"), "--log-level", "info")...))
		return
	}
	s.place.run(s.T, "--name", "http-1", "--role", "billing", "--role", "http",
		"--listen", s.adapt("localhost:8080"), "--token-file", filepath.Join(s.folder, "token")).await("acquired")
}

// addSchedule starts a node with a schedule that has run once.
func (s *stage) addSchedule() {
	s.Helper()
	cronNode(s.T, s.place.schedules(s.T, `name = "backup"`+"\n"+never+"\ncommand = \"true\""), "jobs-1")
	eventually(s.T, "the schedule", func() bool {
		return strings.Contains(invoke(s.T, s.place.with("cron", "list")...).stdout, "backup")
	})
	run := s.place.trigger(s.T, "backup")
	s.place.awaitRun(s.T, "backup", run)
	s.replace("--run 42", fmt.Sprint("--run ", run), "cron remove backup ", "cron remove backup-noon ") // its node runs the other one
}

// addProcessors starts processors of which one fails at an event and one has dead letters.
func (s *stage) addProcessors() {
	s.Helper()
	config := func(name string, poison processor.PoisonPolicy) processor.Config {
		return processor.Config{
			Name: name, Poison: poison, MaxAttempts: 1, BatchSize: 1, PollInterval: 10 * time.Millisecond,
			Handle: func(_ context.Context, _ pgx.Tx, batch []processor.Event) error {
				for _, event := range batch {
					if string(event.Data) == "13" && name != "orders" {
						return errors.New("13 is unlucky")
					}
				}
				return nil
			},
			Reset: func(context.Context, pgx.Tx) error { return nil },
		}
	}
	store := s.place.processors(s.T, config("balances", processor.PoisonStop), config("mails", processor.PoisonDeadLetter), config("orders", processor.PoisonStop))
	eventually(s.T, "the tables", func() bool { return invoke(s.T, s.place.with("processor", "list")...).code == console.ExitDone })
	s.place.append(s.T, store, 1, 13, 13)
	s.place.awaitProcessor(s.T, "mails", "dead letters", func(r record.Processor) bool { return r.DeadLetters == 2 })
	s.place.awaitProcessor(s.T, "balances", "a failure", func(r record.Processor) bool { return r.Failing != nil })
	var letters record.DeadLetters
	invoke(s.T, s.place.with("processor", "dead-letters", "mails", "-o", "json")...).want(s.T, console.ExitDone).decode(s.T, &letters)
	failing, one, two := *s.place.show(s.T, "balances").Failing, letters.DeadLetters[0].ID, letters.DeadLetters[1].ID
	s.replace("742:1031", failing, "17 18", fmt.Sprint(one, " ", two), "dismiss mails 17  ", fmt.Sprint("dismiss mails ", one, "  "), "[17, 18]", fmt.Sprintf("[%d, %d]", one, two))
}

// addAlert writes an alert that fires, and silences.
func (s *stage) addAlert() {
	s.Helper()
	i := s.place.installation(s.T)
	for _, name := range []string{"no_leader", "no_scheduler_leader"} {
		for _, sql := range []string{
			`INSERT INTO {alert_rules} (name, position, condition, for_ms, severity, labels, annotations, notify, changed_by)
				VALUES ($1, length($1), 'up == 0', 0, 'critical', '{}', '{}', '{}', 'api-1')`,
			`INSERT INTO {alert_states} (rule, fingerprint, state, severity, labels, annotations, value, active_at, fired_at, incident)
				VALUES ($1, 'f', 'firing', 'critical', '{"role": "billing"}', '{"summary": "it is down"}', 0, now(), now(), '')`,
		} {
			pgtest.Exec(s, i.Pool, pgtest.SQL(i.Backend, sql), name)
		}
	}
	for range 3 { // a block ends the third one
		invoke(s.T, s.place.with("alerts", "silence", "no_leader", "--for", "1h")...).want(s.T, console.ExitDone)
	}
}

// addSpread starts two members that share roles.
func (s *stage) addSpread() {
	s.Helper()
	sharing := &sharing{s.place, s.place.installation(s.T).Backend}
	sharing.join(s.T, "one", nil)
	sharing.join(s.T, "two", nil)
	sharing.awaitEven(s.T)
	s.replace("--spread partitions", "--spread parts")
}

// noteGroup adds a shell to those whose processes pgrep finds on the stage.
func (s *stage) noteGroup(sh *shell) {
	s.Helper()
	path := filepath.Join(s.folder, "groups")
	groups, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(groups, "%d\n", sh.command.Process.Pid), 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
}
