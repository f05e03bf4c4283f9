package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
)

// The passwords of a user whom an operator adds.
const (
	bertasPassword = "a-password-of-berta"
	newPassword    = "another-password-of-berta"
)

// desk is what an operator has: a browser with the page of tenure-server, a terminal, and the file with
// the configuration. The cluster has nodes of the program and of a Go service.
type desk struct {
	*world
	*page
	screen   *page // shows the terminal, for pictures
	programs string
	config   string // a file
	server   *exec.Cmd
	address  string      // of the server
	refuses  atomic.Bool // the processor refuses all events
	store    *eventstore.Store
	shards   []*cluster.Member

	name       string // of the pictures of the task at hand
	pictures   int
	transcript strings.Builder

	before tenure.Leader // what a task begins with
	target string
	count  int64
}

const deskConfig = `
[cluster]
name = "shop"

[[alerts]]
name = "too_few_nodes"
condition = "sum(tenure_cluster_nodes{status='active'}) < 90"
severity = "warning"
annotations = { summary = "fewer than 90 nodes are active" }

[[cron]]
name = "report"
schedule = "30 2 1 1 *"
command = "echo well"
`

// newDesk starts a cluster, in which a leader has crashed.
func newDesk(t *testing.T) *desk {
	browser(t)
	d := &desk{programs: t.TempDir(), world: newWorld(t, bare, nil)}
	d.screen = d.open(emptyPage)
	d.page = d.screen
	for _, folder := range []string{"../../../cmd/tenure", "../../tenure-server"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(d.programs, filepath.Base(folder)), ".")
		build.Dir = folder
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", folder, err, output)
		}
	}
	d.config = filepath.Join(d.programs, "tenure.toml")
	if err := os.WriteFile(d.config, []byte(deskConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	d.addUser("anna", token)
	first := d.start("tenure", "run", "--name", "api-1", "--role", "billing", "--lease", "3s")
	d.Await("api-1 leads", func() bool { return d.leader("billing").NodeName == "api-1" })
	for _, name := range []string{"api-2", "api-3"} {
		d.start("tenure", "run", "--name", name, "--role", "billing", "--lease", "3s")
	}
	d.start("tenure", "cron", "run", "--config", d.config, "--name", "cron-1")
	d.share()
	d.Await("the nodes have joined", func() bool {
		return postgrestest.Value[int64](d.Installation, "SELECT count(*) FROM {nodes} WHERE name IN ('api-2', 'api-3', 'cron-1')") == 3
	})
	d.AwaitWatched(d.member("api-1").ID)
	d.serve()
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.Await("another node leads", func() bool {
		return strings.HasPrefix(d.leader("billing").NodeName, "api-") && d.leader("billing").NodeName != "api-1"
	})
	d.Await("the page is served", func() bool { return d.access("anna", token) == "operator" })
	d.url = d.address
	d.page = d.open(emptyPage)
	d.forgive("/" + emptyPage)
	d.do("log in", command(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Authorization": basic("anna", token)}}), chromedp.Navigate(d.url))
	d.shows("billing")
	return d
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// arguments are those of a command, with the database.
func (d *desk) arguments(args []string) []string {
	return append(slices.Clone(args), "--dsn", d.Server.DSN(), "--schema", d.schema)
}

// start starts a program, which ends with the test. It writes to a file with the name of the node.
func (d *desk) start(program string, args ...string) *exec.Cmd {
	d.screen.Helper()
	log, err := os.Create(d.log(args))
	if err != nil {
		d.screen.Fatal(err)
	}
	started := exec.Command(filepath.Join(d.programs, program), d.arguments(args)...)
	started.Stdout, started.Stderr = log, log
	started.SysProcAttr = children.EndsWithParent()
	if err := started.Start(); err != nil {
		d.screen.Fatal(err)
	}
	d.screen.Cleanup(func() {
		_ = started.Process.Kill()
		_ = started.Wait()
		if text, _ := os.ReadFile(log.Name()); d.screen.Failed() {
			d.screen.Logf("%v wrote:\n%s", args, text)
		}
		_ = log.Close()
	})
	return started
}

func (d *desk) log(args []string) string {
	return filepath.Join(d.programs, args[slices.Index(args, "--name")+1]+".log")
}

var servedAt = regexp.MustCompile(`msg="serving HTTP" .*address=([0-9.:]+)`)

// serve starts the server.
func (d *desk) serve() {
	d.screen.Helper()
	args := []string{"serve", "--config", d.config, "--name", "server-1", "--listen", "127.0.0.1:0", "--log-level", "info", "--alert-interval", "500ms"}
	d.server = d.start("tenure-server", args...)
	d.Await("the server serves", func() bool {
		text, _ := os.ReadFile(d.log(args))
		found := servedAt.FindSubmatch(text)
		if found != nil {
			d.address = "http://" + string(found[1]) + "/"
		}
		return found != nil
	})
}

// share joins two members of a Go service. They share six roles, three of which should be on the second,
// and the first has a processor.
func (d *desk) share() {
	d.screen.Helper()
	config := cluster.SpreadConfig{Roles: cluster.Partitions("shard", 6), MoveDelay: 50 * time.Millisecond}
	for i := range 3 {
		config.Roles[i].PreferredNode = "west-2"
	}
	for _, name := range []string{"west-1", "west-2"} {
		member, err := cluster.Join(d.screen.Context(), d.backend, tenure.Config{Name: name, Logger: slog.New(slog.DiscardHandler)}, cluster.Config{})
		if err != nil {
			d.screen.Fatal(err)
		}
		d.screen.Cleanup(func() { _ = member.Close(context.Background()) }) // the test has its results
		spread, err := member.Spread("shard", config)
		if err != nil {
			d.screen.Fatal(err)
		}
		postgrestest.Run(d.screen, func(ctx context.Context) error {
			return spread.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
				<-ctx.Done()
				return nil
			})
		})
		d.shards = append(d.shards, member)
	}
	d.store = eventstore.New(d.backend, eventstore.Config{})
	group, err := processor.NewGroup(d.shards[0].Node(), tenure.NamedRole("mailer"), d.pool, processor.GroupConfig{})
	if err != nil {
		d.screen.Fatal(err)
	}
	err = group.Add(processor.Config{
		Name: "mails", Kind: "outbox", Log: d.store.Log(), Poison: processor.PoisonDeadLetter, Retry: retry.FixedInterval{Interval: 20 * time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			if d.refuses.Load() {
				return 0, fmt.Errorf("%w: the receiver answered 422", processor.ErrPoison)
			}
			return len(batch), nil
		},
	})
	if err != nil {
		d.screen.Fatal(err)
	}
	postgrestest.Run(d.screen, group.Run)
}

// misplace exchanges two shared roles, which keeps the shares equal. A request can come too late for a
// term.
func (d *desk) misplace() {
	d.page.Helper()
	d.Await("two roles are with the wrong nodes", func() bool {
		wrong, placed := map[string]int{"shard/0": 0, "shard/3": 1}, 0
		leaders, err := d.backend.Leaders(d.screen.Context(), "shard/0", "shard/3")
		for _, l := range leaders {
			target := d.shards[wrong[l.Role]].Node().ID()
			if l.NodeID == target {
				placed++
				continue
			}
			_ = d.backend.Request(d.screen.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: l.Role, Term: l.Term, Target: target, By: "test"})
		}
		return err == nil && placed == 2
	})
}

// refuse has the processor refuse two events, which it then would handle.
func (d *desk) refuse() {
	d.page.Helper()
	d.refuses.Store(true)
	if err := d.store.Append(d.screen.Context(), d.pool, eventstore.NewEvent{Type: "mail", Data: 1}, eventstore.NewEvent{Type: "mail", Data: 2}); err != nil {
		d.page.Fatal(err)
	}
	d.holds("two events are dead letters", "SELECT count(*) FROM {dead_letters} WHERE replayed_at IS NULL", 2)
	d.refuses.Store(false)
}

// begin begins a task.
func (d *desk) begin(name string) {
	d.name, d.pictures = name, 0
	d.transcript.Reset()
}

// picture writes what the page shows, if pictures are wanted.
func (d *desk) picture() {
	d.page.Helper()
	if d.pictures++; *images != "" {
		d.settle()
		d.writeScreenshot(fmt.Sprintf("%s-%d", d.name, d.pictures))
	}
}

// run runs a command in the terminal and returns its output.
func (d *desk) run(program string, args ...string) string {
	d.page.Helper()
	return d.shell(program+" "+strings.Join(args, " "), exec.CommandContext(d.screen.Context(), filepath.Join(d.programs, program), d.arguments(args)...))
}

// shell runs a command that a user types as a line.
func (d *desk) shell(line string, command *exec.Cmd) string {
	d.page.Helper()
	output, err := command.CombinedOutput()
	fmt.Fprintf(&d.transcript, "$ %s\n%s", line, output)
	if err != nil {
		d.page.Fatalf("%s: %v\n%s", line, err, output)
	}
	if d.pictures++; *images != "" && d.name != "" {
		value[bool](d.screen, `document.body.innerHTML = `+quote("<pre>"+html.EscapeString(d.transcript.String())+"</pre>")+`, true`)
		d.screen.writeScreenshot(fmt.Sprintf("%s-%d", d.name, d.pictures))
	}
	return string(output)
}

// says fails the test unless a text has all parts.
func (d *desk) says(text string, parts ...string) {
	d.page.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.page.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// sum reads a number from the database.
func (d *desk) sum(sql string) int64 { return postgrestest.Value[int64](d.Installation, sql) }

// holds waits until the database has a number.
func (d *desk) holds(what, sql string, want int64) {
	d.page.Helper()
	d.Await(what, func() bool { return d.sum(sql) == want })
}

// leader returns the leader of a role, or nothing.
func (d *desk) leader(role string) tenure.Leader {
	leaders, err := d.backend.Leaders(d.screen.Context(), role)
	if err != nil || len(leaders) != 1 {
		return tenure.Leader{}
	}
	return leaders[0]
}

// drained waits until a node has drained.
func (d *desk) drained(name string) {
	d.page.Helper()
	d.Await(name+" has drained", func() bool {
		return d.member(name).Status == tenure.StatusDraining && d.leader("billing").NodeName != name
	})
}

// requester is whom commands record.
func requester() string {
	account, err := user.Current()
	host, _ := os.Hostname() // as the command does
	if err != nil {
		return "unknown@" + host
	}
	return account.Username + "@" + host
}

// hash has the command hash a password.
func (d *desk) hash(name, password string, args ...string) string {
	command := exec.CommandContext(d.screen.Context(), filepath.Join(d.programs, "tenure-server"), append([]string{"serve", "password", name, "--access", "operator"}, args...)...)
	command.Stdin = strings.NewReader(password + "\n")
	return d.shell(strings.Join(append([]string{"tenure serve password", name, "--access operator"}, args...), " "), command)
}

// edit changes the configuration, and has a server that runs read it.
func (d *desk) edit(change func(string) string) {
	d.page.Helper()
	text, err := os.ReadFile(d.config)
	if err == nil {
		err = os.WriteFile(d.config, []byte(change(string(text))), 0o600)
	}
	if err == nil && d.server != nil {
		err = d.server.Process.Signal(syscall.SIGHUP)
	}
	if err != nil {
		d.page.Fatal(err)
	}
}

// addUser adds an operator.
func (d *desk) addUser(name, password string) {
	d.page.Helper()
	added := d.hash(name, password)
	d.edit(func(text string) string { return text + added })
}

// changePassword replaces the hash of the last user's password.
func (d *desk) changePassword(name, password string) {
	d.page.Helper()
	var changed struct {
		Hash string `json:"password_hash"`
	}
	if err := json.Unmarshal([]byte(d.hash(name, password, "-o", "json")), &changed); err != nil {
		d.page.Fatal(err)
	}
	d.edit(func(text string) string {
		at := strings.LastIndex(text, "$argon2id$")
		return text[:at] + changed.Hash + text[at+strings.Index(text[at:], `"`):]
	})
}

// access returns what a user may do on the page.
func (d *desk) access(name, password string) string {
	d.page.Helper()
	request, err := http.NewRequestWithContext(d.screen.Context(), http.MethodGet, d.address+"api/session", http.NoBody)
	if err != nil {
		d.page.Fatal(err)
	}
	request.Header.Set("Authorization", basic(name, password))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var session struct{ Access string }
	if json.NewDecoder(response.Body).Decode(&session) != nil {
		return ""
	}
	return session.Access
}
