package recipes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/postgres"
)

// etcdTTL is the lease of a session in etcd, in seconds.
const etcdTTL = 3

// startEtcd starts a server of etcd and returns a client and the server's process.
func startEtcd(t *testing.T) (*clientv3.Client, *sandbox.Process) {
	t.Helper()
	program, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatal("there is no etcd: make prerequisites installs it")
	}
	box, err := sandbox.New(sandbox.Kind{Name: "etcd", Accounts: []string{"nobody", "daemon"}, PIDFile: "pid", Signal: "KILL"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	place, placeErr := box.Place()
	port, portErr := sandbox.FreePort()
	peerPort, peerErr := sandbox.FreePort()
	if err := errors.Join(placeErr, portErr, peerErr); err != nil {
		t.Fatal(err)
	}
	url, peers := fmt.Sprintf("http://%s:%d", sandbox.Host, port), fmt.Sprintf("http://%s:%d", sandbox.Host, peerPort)
	log := filepath.Join(place, "log")
	process, err := box.Launch(log, program, "--data-dir="+filepath.Join(place, "data"), "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Signal(syscall.SIGKILL) // an error if it has ended
		<-process.Done()
		if t.Failed() {
			t.Log(sandbox.LogTail(log))
		}
	})
	pid := []byte(strconv.Itoa(process.PID()) + "\n") // ends etcd if this process ends first
	if err := os.WriteFile(filepath.Join(place, "pid"), pid, 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: time.Minute, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err := client.Get(ctx, "ready"); err != nil; _, err = client.Get(ctx, "ready") {
		if ctx.Err() != nil || process.Ended() {
			t.Fatalf("etcd does not answer: %v", err)
		}
	}
	return client, process
}

// etcdMove is a program whose instances move from etcd to Tenure.
type etcdMove struct {
	testing.TB
	dsn    string
	client *clientv3.Client

	working  atomic.Int64
	overlaps atomic.Int64
	leaders  sync.Map // the names of the instances that work
}

// work lasts until its context ends.
func (m *etcdMove) work(ctx context.Context, name string) error {
	if m.working.Add(1) > 1 {
		m.overlaps.Add(1)
	}
	defer m.working.Add(-1)
	m.leaders.Store(name, true)
	defer m.leaders.Delete(name)
	<-ctx.Done()
	return nil
}

// etcdRelease is a version of the program. It returns when the context and its work have ended.
type etcdRelease func(ctx context.Context, m *etcdMove, name string) error

// elect campaigns in etcd as the page shows. The context of lead ends with the session.
func (m *etcdMove) elect(ctx context.Context, name string, lead func(context.Context) error) error {
	session, err := concurrency.NewSession(m.client, concurrency.WithTTL(etcdTTL))
	if err != nil {
		return err
	}
	defer session.Close() // after the work has ended
	if err := concurrency.NewElection(session, "/billing").Campaign(ctx, name); err != nil {
		if ctx.Err() != nil {
			return nil // stopped as a candidate
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		defer cancel()
		select {
		case <-session.Done(): // the lease in etcd is lost
		case <-ctx.Done():
		}
	}()
	return lead(ctx)
}

func beforeMove(ctx context.Context, m *etcdMove, name string) error {
	return m.elect(ctx, name, func(ctx context.Context) error { return m.work(ctx, name) })
}

// bothElections campaigns in Tenure while it leads in etcd.
func bothElections(ctx context.Context, m *etcdMove, name string) error {
	return m.elect(ctx, name, func(ctx context.Context) error { return afterMove(ctx, m, name) })
}

func afterMove(ctx context.Context, m *etcdMove, name string) error {
	config := postgres.RunConfig{Node: tenure.Config{StopTimeout: time.Second}}
	return postgres.RunWith(ctx, m.dsn, tenure.NamedRole("billing"), config, func(ctx context.Context, _ *tenure.Term) error {
		return m.work(ctx, name)
	})
}

// start runs an instance until stop is called, or the test ends.
func (m *etcdMove) start(name string, version etcdRelease) (stop func()) {
	m.Helper()
	return postgrestest.Run(m, func(ctx context.Context) error { return version(ctx, m, name) })
}

func (m *etcdMove) await(what string, holds func() bool) {
	m.Helper()
	waiter := &postgrestest.Installation{TB: m}
	waiter.Await(what, holds)
}

func (m *etcdMove) works(name string) func() bool {
	return func() bool {
		_, leads := m.leaders.Load(name)
		return leads
	}
}

// TestEtcdMoveInTwoReleases replaces two instances of a program one by one, first by release 1
// and then by release 2, and no two of them ever work at the same time.
func TestEtcdMoveInTwoReleases(t *testing.T) {
	t.Parallel()
	client, _ := startEtcd(t)
	m := &etcdMove{TB: t, dsn: pgtest.Shared(t).Database(t), client: client}
	stopFirst := m.start("old 1", beforeMove)
	m.await("old 1 to lead", m.works("old 1"))
	stopSecond := m.start("both 2", bothElections)
	stopFirst()
	m.await("both 2 to lead", m.works("both 2"))
	stopFirst = m.start("both 1", bothElections)
	stopSecond()
	m.await("both 1 to lead", m.works("both 1"))
	stopSecond = m.start("new 2", afterMove)
	stopFirst()
	m.await("new 2 to lead", m.works("new 2"))
	m.start("new 1", afterMove)
	stopSecond()
	m.await("new 1 to lead", m.works("new 1"))
	if overlaps := m.overlaps.Load(); overlaps > 0 {
		t.Errorf("two instances worked at the same time %d times", overlaps)
	}
}

// TestEtcdMoveWithoutFirstReleaseOverlaps: etcd and Tenure do not exclude each other, which the
// test above would notice.
func TestEtcdMoveWithoutFirstReleaseOverlaps(t *testing.T) {
	t.Parallel()
	client, _ := startEtcd(t)
	m := &etcdMove{TB: t, dsn: pgtest.Shared(t).Database(t), client: client}
	m.start("old", beforeMove)
	m.await("old to lead", m.works("old"))
	m.start("new", afterMove)
	m.await("new to lead", m.works("new"))
	if m.overlaps.Load() == 0 {
		t.Error("an old instance and one of release 2 did not work at the same time")
	}
}

// TestLossOfEtcdEndsWorkOfFirstRelease: an instance of release 1 ends its work when its lease in
// etcd is lost, and gives up the role, also if etcd does not answer.
func TestLossOfEtcdEndsWorkOfFirstRelease(t *testing.T) {
	t.Parallel()
	client, server := startEtcd(t)
	m := &etcdMove{TB: t, dsn: pgtest.Shared(t).Database(t), client: client}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the test waits for it
		defer close(ended)
		_ = bothElections(ctx, m, "both") // an error, without the server
	}()
	m.await("both to lead", m.works("both"))
	if err := server.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	m.await("the work to end", func() bool { return !m.works("both")() })
	if ctx.Err() != nil {
		t.Fatal("the work ended with the instance")
	}
	m.start("new", afterMove)
	m.await("new to lead", m.works("new"))
	cancel()
	_ = client.Close() // the session cannot be closed without the server
	<-ended
	if overlaps := m.overlaps.Load(); overlaps > 0 {
		t.Errorf("two instances worked at the same time %d times", overlaps)
	}
}
