//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
)

// server is one PostgreSQL server and the Patroni that manages it.
type server struct {
	index    int
	name     string
	place    string
	port     int // of PostgreSQL
	restPort int
	patroni  *exec.Cmd
	ended    chan struct{}
}

func (s *server) address(n *network) string {
	return net.JoinHostPort(n.address(s.index), strconv.Itoa(s.port))
}

// newServer writes the configuration of a member.
func (b *bed) newServer(index int) (*server, error) {
	s := &server{index: index, name: fmt.Sprintf("pg%d", index+1), port: 5432, restPort: 8008}
	var err error
	if s.place, err = b.box.Place(); err != nil {
		return nil, err
	}
	replication := s.address(b.network)
	if !b.network.hasNamespaces() {
		var errs [2]error
		s.port, errs[0] = sandbox.FreePort()
		s.restPort, errs[1] = sandbox.FreePort()
		proxy, err := faultwire.Start(net.JoinHostPort(sandbox.Host, strconv.Itoa(s.port)))
		if err := errors.Join(errs[0], errs[1], err); err != nil {
			return nil, err
		}
		b.network.proxies = append(b.network.proxies, proxy)
		replication = proxy.Addr()
	}
	address := b.network.address(index)
	rest := net.JoinHostPort(address, strconv.Itoa(s.restPort))
	text := strings.NewReplacer(
		"{name}", s.name, "{rest}", rest, "{etcd}", b.etcd.address, "{listen}", s.address(b.network),
		"{connect}", replication, "{place}", s.place, "{bin}", b.installation.Bin,
		"{ttl}", strconv.Itoa(ttl), "{loop_wait}", strconv.Itoa(loopWait), "{retry_timeout}", strconv.Itoa(retryTimeout),
		"{synchronous}", strconv.FormatBool(b.synchronous),
	).Replace(configuration)
	path := filepath.Join(s.place, "patroni.yml")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), b.box.Own(path)); err != nil {
		return nil, err
	}
	return s, nil
}

// The times of Patroni, in seconds: as short as it takes them, so that a failover
// takes seconds. ttl must be at least loop_wait + 2 * retry_timeout.
const (
	ttl          = 6
	loopWait     = 1
	retryTimeout = 2
)

// Shared memory is in files of the data directory, so that a killed server leaves none.
//
// Patroni speaks version 2 of etcd's API here. With version 3 a primary that was
// frozen overwrites the key of its successor when it returns (Patroni before 3.0.3):
// the successor is demoted, and what it acknowledged is lost, in synchronous mode
// too.
const configuration = `scope: tenure
name: {name}
restapi: {listen: '{rest}', connect_address: '{rest}'}
etcd: {host: '{etcd}'}
watchdog: {mode: 'off'}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: {loop_wait}
    retry_timeout: {retry_timeout}
    primary_start_timeout: 0
    synchronous_mode: {synchronous}
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        wal_log_hints: 'on'
        wal_sender_timeout: 3s
        wal_receiver_timeout: 3s
        max_connections: 100
        shared_buffers: 16MB
        fsync: 'off'
        dynamic_shared_memory_type: mmap
  initdb: [{auth: trust}, {encoding: UTF8}, {locale: C}, no-sync]
  pg_hba: ['local all all trust', 'host all all all trust', 'host replication all all trust']
postgresql:
  listen: {listen}
  connect_address: {connect}
  data_dir: {place}/data
  bin_dir: {bin}
  pgpass: {place}/pgpass
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  basebackup: [{checkpoint: fast}, no-sync]
  authentication:
    superuser: {username: postgres, password: unused}
    replication: {username: replicator, password: unused}
  parameters: {unix_socket_directories: '{place}', log_line_prefix: '%m [%p] %q%a: '}
`

// start starts Patroni, which starts PostgreSQL.
func (s *server) start(b *bed) error {
	var err error
	s.patroni, err = b.launch(b.network.within(s.index), filepath.Join(s.place, "patroni.log"), "patroni", filepath.Join(s.place, "patroni.yml"))
	if err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait() // it is killed
		close(ended)
	}(s.patroni, s.ended)
	return nil
}

func (s *server) killPatroni() {
	_ = s.patroni.Process.Kill()
	<-s.ended
}

// postmaster returns the process id of PostgreSQL's first process.
func (s *server) postmaster() (int, error) {
	content, err := os.ReadFile(filepath.Join(s.place, "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(content, []byte("\n"))
	return strconv.Atoi(string(bytes.TrimSpace(first)))
}

// processes lists PostgreSQL's processes, the first one first.
func (s *server) processes() ([]int, error) {
	first, err := s.postmaster()
	if err != nil {
		return nil, err
	}
	return append([]int{first}, sandbox.Children(first)...), nil
}

// freeze stops Patroni and PostgreSQL, as a machine that hangs does.
func (s *server) freeze(b *bed) (thaw func(), err error) {
	stopped := []int{s.patroni.Process.Pid}
	_ = s.patroni.Process.Signal(syscall.SIGSTOP)
	for range 2 { // a process may have started during the first pass
		all, err := s.processes()
		if err != nil {
			_ = s.patroni.Process.Signal(syscall.SIGCONT)
			return nil, err
		}
		for _, pid := range all {
			_ = sandbox.Signal(pid, syscall.SIGSTOP) // it may have ended
		}
		stopped = append(stopped, all...)
	}
	b.box.NoteStopped(stopped...)
	return func() {
		for _, pid := range stopped {
			_ = sandbox.Signal(pid, syscall.SIGCONT)
		}
		b.box.NoteStopped()
	}, nil
}

func (s *server) rest(b *bed, path string) string {
	return "http://" + net.JoinHostPort(b.network.address(s.index), strconv.Itoa(s.restPort)) + path
}

// errRefused is returned if Patroni cannot carry out a request at the moment.
var errRefused = errors.New("refused")

// post sends Patroni a request and waits until it is done.
func (s *server) post(ctx context.Context, b *bed, path string, body any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.rest(b, path), bytes.NewReader(content))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	if response.StatusCode == http.StatusPreconditionFailed {
		return fmt.Errorf("%s %s: %w: %s", s.name, path, errRefused, bytes.TrimSpace(answer))
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", s.name, path, response.Status, bytes.TrimSpace(answer))
	}
	return nil
}

// view is what Patroni says of its cluster.
type view struct {
	Members []struct {
		Name, Role, State string
		Timeline          int
	}
}

// named is the first member with a role, or empty.
func (v view) named(role string) string {
	for _, m := range v.Members {
		if m.Role == role {
			return m.Name
		}
	}
	return ""
}

func (s *server) view(ctx context.Context, b *bed) (v view, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.rest(b, "/cluster"), http.NoBody)
	if err != nil {
		return v, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&v)
	return v, err
}

// etcd is the store in which Patroni keeps who is primary.
type etcd struct {
	address string
	process *exec.Cmd
}

func (b *bed) startEtcd() error {
	place, placeErr := b.box.Place()
	client, clientErr := sandbox.FreePort()
	peer, peerErr := sandbox.FreePort()
	if err := errors.Join(placeErr, clientErr, peerErr); err != nil {
		return err
	}
	address := net.JoinHostPort(b.network.etcdAddress(), strconv.Itoa(client))
	peers := fmt.Sprintf("http://%s:%d", sandbox.Host, peer)
	process, err := b.launch(nil, filepath.Join(place, "etcd.log"), "etcd", "--name=etcd", "--enable-v2", "--data-dir="+filepath.Join(place, "data"),
		"--listen-client-urls=http://"+address, "--advertise-client-urls=http://"+address,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=etcd="+peers)
	b.etcd = &etcd{address: address, process: process}
	return err
}

func (e *etcd) pause(box *sandbox.Sandbox) (resume func()) {
	_ = e.process.Process.Signal(syscall.SIGSTOP)
	box.NoteStopped(e.process.Process.Pid)
	return func() {
		_ = e.process.Process.Signal(syscall.SIGCONT)
		box.NoteStopped()
	}
}

var patroniKind = sandbox.Kind{Name: "patroni", Accounts: []string{"postgres", "nobody"}, PIDFile: "data/postmaster.pid", Signal: "QUIT"}

func find() (pgserver.Installation, error) {
	for _, program := range []string{"patroni", "etcd"} {
		if _, err := exec.LookPath(program); err != nil {
			return pgserver.Installation{}, fmt.Errorf("%w; on Debian run: make prerequisites", err)
		}
	}
	return pgserver.Find("")
}
