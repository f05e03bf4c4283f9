package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// scene is a cluster in a separate database, in which a scenario happens.
type scene struct {
	*testing.T
	name   string
	dsn    string
	pool   *pgxpool.Pool // of the observer
	cases  *table
	pulse  *pulse
	server string // the address of tenure-server, if one runs
}

// lease is the lease of all nodes. A node trusts itself for nine tenths of it.
const lease = 3 * time.Second

// run starts a node that prints its events.
func (s *scene) run(name string, args ...string) *process {
	s.Helper()
	return launch(s.T, name, program("tenure"), nil,
		append([]string{"run", "-o", "json", "--dsn", s.dsn, "--name", name, "--lease", lease.String()}, args...)...)
}

// lead starts a node that leads a role.
func (s *scene) lead(name, role string, args ...string) *process {
	s.Helper()
	p := s.run(name, append([]string{"--role", role}, args...)...)
	p.leads(role)
	return p
}

// standby starts a node that waits for a role, and that watches the other nodes.
func (s *scene) standby(name, role string, args ...string) *process {
	s.Helper()
	p := s.run(name, append([]string{"--role", role}, args...)...)
	p.await("acquire_failed", role, time.Time{})
	s.watching(name)
	return p
}

// watching waits until a node watches its predecessor, and has sent a heartbeat since it joined: its
// first attempts are over then, one of which could find a lock free before it sees a death.
func (s *scene) watching(name string) {
	s.Helper()
	s.eventually(name+" watches", func() bool {
		var watches bool
		err := s.pool.QueryRow(s.Context(), `SELECT bool_or(watching AND last_heartbeat > started_at + interval '0.5 s')
			FROM tenure_nodes WHERE name = $1 AND status <> 'dead'`, name).Scan(&watches)
		return err == nil && watches
	})
}

// eventually waits until something is true.
func (s *scene) eventually(what string, ok func() bool) {
	s.Helper()
	for limit := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			s.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// invoke runs a command and returns its output and its exit code.
func (s *scene) invoke(args ...string) (stdout, stderr string, code int) {
	s.Helper()
	return s.execute("tenure", args...)
}

func (s *scene) execute(name string, args ...string) (stdout, stderr string, code int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program(name), append(args, "--dsn", s.dsn)...)
	command.Env = append(environment(), "TZ=UTC")
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil && command.ProcessState == nil {
		s.Fatal(err)
	}
	return out.String(), problems.String(), command.ProcessState.ExitCode()
}

// tenure returns the output of a command that ends well.
func (s *scene) tenure(args ...string) string {
	s.Helper()
	out, problems, code := s.invoke(args...)
	if code != 0 {
		s.Fatalf("tenure %s ended with %d: %s%s", strings.Join(args, " "), code, out, problems)
	}
	return out
}

// tenureServer is tenure for the commands of the server.
func (s *scene) tenureServer(args ...string) string {
	s.Helper()
	out, problems, code := s.execute("tenure-server", args...)
	if code != 0 {
		s.Fatalf("tenure-server %s ended with %d: %s%s", strings.Join(args, " "), code, out, problems)
	}
	return out
}

// json reads the output of a command that prints JSON.
func (s *scene) json(into any, args ...string) {
	s.Helper()
	s.decode([]byte(s.tenure(append(args, "-o", "json")...)), into)
}

func (s *scene) decode(text []byte, into any) {
	s.Helper()
	s.speaks(text)
	if err := json.Unmarshal(text, into); err != nil {
		s.Fatalf("%v in %s", err, text)
	}
}

var servedAt = regexp.MustCompile(`msg="serving HTTP" .*address=([0-9.:]+)`)

// serve starts a dashboard, and returns its process.
func (s *scene) serve(args ...string) *process {
	s.Helper()
	p := launch(s.T, "server", program("tenure-server"), nil, append([]string{"serve", "--dsn", s.dsn, "--name", "server", "--lease", lease.String(),
		"--listen", "127.0.0.1:0", "--log-level", "info", "--alert-interval", "200ms"}, args...)...)
	s.server = s.address(p)
	s.eventually("both roles of the server are led", func() bool {
		var led int
		err := s.pool.QueryRow(s.Context(), "SELECT count(*) FROM tenure_terms WHERE role IN ('metrics-aggregator', 'log-compactor') AND ended_at IS NULL").Scan(&led)
		return err == nil && led == 2
	})
	return p
}

// address returns the address of a process's HTTP server.
func (s *scene) address(p *process) string {
	s.Helper()
	p.logs("serving HTTP")
	return "http://" + servedAt.FindStringSubmatch(p.text())[1]
}

// get returns the answer of an HTTP server.
func (s *scene) get(url string) (status int, body []byte) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, body
}

// page reads data of the dashboard, or of the HTTP API beside it.
func (s *scene) page(into any, path string) {
	s.Helper()
	status, body := s.get(s.server + path)
	if status != http.StatusOK {
		s.Fatalf("%s: %d: %s", path, status, body)
	}
	s.decode(body, into)
}

// newScene makes a cluster's database on a server.
func newScene(t *testing.T, name string, cases *table, pulse *pulse, server *pgtest.Server) *scene {
	t.Helper()
	dsn := server.Database(t)
	s := &scene{T: t, name: name, dsn: dsn, cases: cases, pulse: pulse, pool: pgtest.Pool(t, dsn)}
	s.tenure("migrate", "up")
	return s
}
