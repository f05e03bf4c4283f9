//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure/internal/children"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

const members = 3

// bed is a cluster of PostgreSQL servers under Patroni, with etcd, and the nodes
// that use it.
type bed struct {
	options
	mode
	installation pgserver.Installation
	box          *sandbox.Sandbox
	network      *network
	etcd         *etcd
	servers      []*server
	probes       []*probe
	proxy        *haproxy // nil if the nodes name the servers
	nodes        []*node
	former       []*node   // that were dismissed
	addedNodes   int       // so far
	faultAt      time.Time // when the present fault began
}

// newBed starts everything and waits until the servers replicate.
func newBed(ctx context.Context, o options, m mode) (*bed, error) {
	b := &bed{options: o, mode: m}
	b.failoverWait = m.wait(o)
	err := b.start(ctx)
	if err != nil {
		b.close()
	}
	return b, err
}

func (b *bed) start(ctx context.Context) (err error) {
	if b.installation, err = find(); err != nil {
		return err
	}
	b.network = newNetwork(ctx, members)
	if b.box, err = sandbox.New(patroniKind); err != nil {
		return err
	}
	if err := b.startEtcd(); err != nil {
		return err
	}
	for i := range members {
		s, err := b.newServer(i)
		if err != nil {
			return err
		}
		b.servers = append(b.servers, s)
		if err := s.start(b); err != nil {
			return err
		}
	}
	if err := b.awaitCluster(ctx, 60*time.Second); err != nil {
		fmt.Printf("Copying the standbys again: %v\n", err)
		if err := b.remakeStandbys(ctx); err != nil {
			return err
		}
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, s := range b.servers {
		b.probes = append(b.probes, startProbe(b.dsn(s)))
	}
	if b.mode.proxy {
		return b.startProxy(ctx)
	}
	return nil
}

func (b *bed) close() {
	for _, n := range b.nodes {
		n.Kill()
	}
	if b.proxy != nil && b.proxy.process != nil {
		b.proxy.kill()
	}
	for _, p := range b.probes {
		p.stop()
	}
	for _, s := range b.servers {
		if s.patroni != nil {
			s.killPatroni()
		}
	}
	if b.etcd != nil && b.etcd.process != nil {
		_ = b.etcd.process.Process.Kill()
		_ = b.etcd.process.Wait()
	}
	if err := b.keepLogs(); err != nil {
		fmt.Fprintln(os.Stderr, "patroni: keeping the logs:", err)
	}
	// The network's end kills what still runs in the namespaces. A server that is killed
	// leaves its shared memory, so the servers end first.
	if b.box != nil {
		_ = b.box.Close() // the directory is temporary
	}
	if b.network != nil {
		if err := b.network.close(); err != nil {
			fmt.Fprintln(os.Stderr, "patroni: removing the network:", err)
		}
	}
}

// launch starts a program that ends with this one, not as root; before is put in
// front of its command line.
func (b *bed) launch(before []string, log, program string, args ...string) (*exec.Cmd, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the program has its own descriptor
	command := append([]string{program}, args...)
	if os.Geteuid() == 0 {
		account, err := unprivileged()
		if err != nil {
			return nil, err
		}
		// The signal is set anew: a change of the account takes it back.
		command = append([]string{"setpriv", "--reuid", account.Uid, "--regid", account.Gid, "--init-groups", "--pdeathsig", "KILL"}, command...)
	}
	command = append(before, command...)
	process := exec.Command(command[0], command[1:]...)
	process.Dir = b.box.Directory
	process.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin", "LC_ALL=C", "TZ=UTC", "HOME=" + b.box.Directory}
	process.Stdout, process.Stderr = file, file
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := process.Start(); err != nil {
		return nil, err
	}
	return process, nil
}

func unprivileged() (*user.User, error) {
	for _, name := range patroniKind.Accounts {
		if account, err := user.Lookup(name); err == nil {
			return account, nil
		}
	}
	return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no account %s", strings.Join(patroniKind.Accounts, " or "))
}

// dsn leads to one server.
func (b *bed) dsn(s *server) string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&connect_timeout=2", s.address(b.network))
}

// hosts leads to the primary among some servers.
func (b *bed) hosts(servers ...*server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.address(b.network))
	}
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", strings.Join(all, ","))
}

func (b *bed) named(name string) *server {
	for _, s := range b.servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// view is the first answer of a Patroni.
func (b *bed) view(ctx context.Context) (v view, err error) {
	for _, s := range b.servers {
		if v, err = s.view(ctx, b); err == nil {
			return v, nil
		}
	}
	return v, err
}

// primary is the server that Patroni says leads, with its synchronous standby if
// there is one.
func (b *bed) primary(ctx context.Context) (primary, standby *server, err error) {
	v, err := b.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	if primary = b.named(v.named("leader")); primary == nil {
		return nil, nil, errors.New("no primary is named by Patroni")
	}
	return primary, b.named(v.named("sync_standby")), nil
}

// awaitCluster waits until there are a primary and two standbys that stream.
func (b *bed) awaitCluster(ctx context.Context, limit time.Duration) error {
	err := children.Until(ctx, limit, 100*time.Millisecond, func() error { return b.healthy(ctx) })
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("the servers are not well %w%s", err, b.logTails())
}

func (b *bed) healthy(ctx context.Context) error {
	primary, standby, err := b.primary(ctx)
	if err != nil {
		return err
	}
	if b.synchronous && standby == nil {
		return errors.New("no synchronous standby")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, b.dsn(primary))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var streaming, synchronous int
	err = conn.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))
		FROM pg_stat_replication WHERE state = 'streaming' AND NOT pg_is_in_recovery()`).Scan(&streaming, &synchronous)
	switch {
	case err != nil:
		return err
	case streaming < members-1:
		return fmt.Errorf("%d standbys stream", streaming)
	case b.synchronous && synchronous == 0:
		return errors.New("no standby is synchronous")
	}
	return nil
}

// prepare makes the tables of the probes and of the writers.
func (b *bed) prepare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.hosts(b.servers...))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `
		CREATE TABLE probe (n bigint);
		INSERT INTO probe VALUES (0);
		CREATE TABLE ledger_head (position bigint);
		INSERT INTO ledger_head VALUES (0);
		CREATE TABLE ledger (position bigint PRIMARY KEY, term bigint, node text, sequence bigint)`)
	return err
}

// keepLogs copies the logs of Patroni, which hold those of PostgreSQL.
func (b *bed) keepLogs() error {
	if b.options.logs == "" {
		return nil
	}
	failed := os.MkdirAll(b.options.logs, 0o755)
	for _, s := range b.servers {
		content, err := os.ReadFile(filepath.Join(s.place, "patroni.log"))
		if err == nil {
			err = os.WriteFile(filepath.Join(b.options.logs, b.mode.option+"-"+s.name+".log"), content, 0o644) //nolint:gosec // it is for reading
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// logTails are the ends of the logs of Patroni.
func (b *bed) logTails() string {
	if !b.verbose {
		return ""
	}
	var text strings.Builder
	for _, s := range b.servers {
		fmt.Fprintf(&text, "\n--- %s\n%s", s.name, sandbox.LogTail(filepath.Join(s.place, "patroni.log")))
	}
	return text.String()
}
