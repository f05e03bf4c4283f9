package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// consulPage has the commands of the move.
const consulPage = "docs/coming-from/consul.md"

// exclusive is a program that works until SIGTERM, and records if another instance works beside it.
const exclusive = `#!/bin/sh
trap 'kill $!; exit 0' TERM
exec 9>working
flock --nonblock 9 || echo "$INSTANCE" >>overlaps
echo "$INSTANCE works"
while :; do sleep 1000 9>&- & wait $!; done
`

// consulMove is a program whose instances move from Consul to Tenure.
type consulMove struct {
	*stage
	address  string            // of Consul
	releases map[string]string // the commands of the page: before, release 1, release 2
}

// newConsulMove starts an agent of Consul, which no package of Debian has.
func newConsulMove(t *testing.T) *consulMove {
	t.Helper()
	pgtest.Long(t)
	program, err := exec.LookPath("consul")
	if err != nil {
		t.Skip("there is no consul in PATH: go run ./lab/consulbuild FILE builds it, for the commands of " + consulPage)
	}
	t.Parallel()
	m := &consulMove{stage: newStage(t, "", true), address: fmt.Sprint("127.0.0.1:", freePort(t)), releases: map[string]string{}}
	if err := os.WriteFile(filepath.Join(m.folder, "billing"), []byte(exclusive), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, block := range shellBlocks(t) {
		if block.page == consulPage {
			for _, match := range regexp.MustCompile(`# (before|release \d).*\n(.*)\n`).FindAllStringSubmatch(block.Text, -1) {
				m.releases[match[1]] = m.adapt(match[2])
			}
		}
	}
	if len(m.releases) != 3 {
		t.Fatalf("the page has the commands %q, want three", m.releases)
	}
	ports := fmt.Sprintf("ports { http = %s, server = %d, serf_lan = %d, serf_wan = -1, dns = -1, grpc = -1 }",
		strings.TrimPrefix(m.address, "127.0.0.1:"), freePort(t), freePort(t))
	launchProgram(t, program, []string{"CHECKPOINT_DISABLE=1"}, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-hcl", "disable_update_check = true", "-hcl", ports)
	eventually(t, "a leader of Consul", func() bool { return strings.Contains(m.ask(http.MethodGet, "/v1/status/leader"), ":") })
	return m
}

// ask sends a request to Consul and returns a good answer, or "".
func (m *consulMove) ask(method, path string) string {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+m.address+path, http.NoBody)
	if err != nil {
		m.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "" // it starts
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// begin starts an instance.
func (m *consulMove) begin(name, release string) *shell {
	m.Helper()
	return m.start(fmt.Sprintf("export INSTANCE=%s CONSUL_HTTP_ADDR=%s; exec %s", name, m.address, m.releases[release]), "")
}

// works waits until an instance works.
func (m *consulMove) works(name string, sh *shell) {
	m.Helper()
	if err := sh.await(name + " works"); err != nil {
		m.Fatal(sh.explain(err))
	}
}

// waits waits until an instance of a release campaigns beside the one that works.
func (m *consulMove) waits(release string) {
	m.Helper()
	eventually(m.T, "a second instance", func() bool {
		if release == "release 2" {
			return strings.Contains(invoke(m.T, m.place.with("status")...).stdout, "2 nodes are alive")
		}
		return strings.Count(m.ask(http.MethodGet, "/v1/session/list"), `"ID"`) == 2
	})
}

// stop ends an instance as a service manager does that signals the main process only.
func (m *consulMove) stop(sh *shell) {
	m.Helper()
	if err := sh.command.Process.Signal(syscall.SIGTERM); err != nil {
		m.Fatal(err)
	}
	<-sh.done
}

// overlaps returns the instances that worked beside another one.
func (m *consulMove) overlaps() string {
	m.Helper()
	names, err := os.ReadFile(filepath.Join(m.folder, "overlaps"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.Fatal(err)
	}
	return string(names)
}

// TestConsulMoveInTwoReleases replaces two instances of a program one by one, first by release 1
// and then by release 2, and no two of them ever work at the same time.
func TestConsulMoveInTwoReleases(t *testing.T) {
	m := newConsulMove(t)
	first := m.begin("old-1", "before")
	m.works("old-1", first)
	for _, next := range []struct{ name, release string }{
		{"both-2", "release 1"}, {"both-1", "release 1"}, {"new-2", "release 2"}, {"new-1", "release 2"},
	} {
		second := m.begin(next.name, next.release)
		m.waits(next.release)
		m.stop(first)
		m.works(next.name, second)
		first = second
	}
	if names := m.overlaps(); names != "" {
		t.Errorf("%q worked beside another instance", names)
	}
}

// TestConsulMoveWithoutFirstReleaseOverlaps: Consul and Tenure do not exclude each other, which
// the test above would notice.
func TestConsulMoveWithoutFirstReleaseOverlaps(t *testing.T) {
	m := newConsulMove(t)
	m.works("old", m.begin("old", "before"))
	m.works("new", m.begin("new", "release 2"))
	if m.overlaps() == "" {
		t.Error("an old instance and one of release 2 did not work at the same time")
	}
}

// TestLossOfConsulLockEndsWorkOfFirstRelease: when Consul invalidates the session of an instance of
// release 1, the command ends, and the role is free.
func TestLossOfConsulLockEndsWorkOfFirstRelease(t *testing.T) {
	m := newConsulMove(t)
	both := m.begin("both", "release 1")
	m.works("both", both)
	held := m.ask(http.MethodGet, "/v1/kv/billing/leader/.lock")
	session := regexp.MustCompile(`"Session": *"([^"]+)"`).FindStringSubmatch(held)
	if session == nil {
		t.Fatalf("Consul holds no lock: %q", held)
	}
	if got := m.ask(http.MethodPut, "/v1/session/destroy/"+session[1]); strings.TrimSpace(got) != "true" {
		t.Fatalf("Consul does not destroy the session: %q", got)
	}
	<-both.done
	m.works("new", m.begin("new", "release 2"))
	if names := m.overlaps(); names != "" {
		t.Errorf("%q worked beside another instance", names)
	}
}
