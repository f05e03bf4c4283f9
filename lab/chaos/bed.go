//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/exactly-one/tenure/cron"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/netns"
	"github.com/exactly-one/tenure/internal/pgserver"
	"github.com/exactly-one/tenure/internal/sandbox"
	"github.com/exactly-one/tenure/internal/steplog"
	"github.com/exactly-one/tenure/lab/chaos/record"
	"github.com/exactly-one/tenure/lab/chaos/script"
	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/processor"
)

// bed is a server with the nodes that use it, and what was recorded of them.
type bed struct {
	options

	caretaker  *sandbox.Caretaker
	disk       string // where the small disk is mounted; empty if there is none
	box        *pgserver.Sandbox
	server     *pgserver.Server    // nil if the server is not ours
	clock      *pgserver.FakeClock // nil if the server has the clock of the machine
	network    *netns.Network      // nil if there are no namespaces
	freezers   *freezers           // nil if there are no control groups
	admin      string              // the connection string of an administrator
	backend    *postgres.Backend
	pool       *pgxpool.Pool
	receiver   *receiver
	processors *processor.Admin
	schedules  *cron.Admin
	members    []*member
	notes      []string // what cannot be done here
	clears     bool     // what the run makes on a server that is not ours must be removed

	mu      sync.Mutex
	history record.History
	lines   *os.File // the reports of the nodes, as they come
	steps   *steplog.File
	looks   []look
	begins  []begin
	logs    *os.File // of the nodes
	stopped []int    // the processes of the server that are stopped at the moment
	turn    chan struct{}
}

// script to clean up when this process has ended, however it did: $1 is the small
// disk, and the others are control groups.
const caretaking = `
stopped=
while read -r word rest; do stopped=$rest; done
[ -z "$stopped" ] || kill -KILL $stopped
disk=$1; shift
[ -z "$disk" ] || { umount -l "$disk"; rmdir "$disk"; }
for group; do
	tries=0
	while [ -e "$group" ] && ! rmdir "$group" && [ $tries -lt 50 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
done 2>/dev/null
true
`

// newBed starts the server and makes the networks; the nodes are not started.
func newBed(ctx context.Context, o options) (*bed, error) {
	b := &bed{options: o, turn: make(chan struct{}, 1)}
	b.history.Settings = record.Settings{
		Lease: o.lease, Margin: o.lease / marginFraction, CheckInterval: o.lease / checkFraction,
		FenceTimeout: fenceTimeout, WatchPeriod: watchPeriod, Publish: publishTimeout,
	}
	if err := b.build(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bed) build(ctx context.Context) (err error) {
	if b.lines, err = createUnnamedFile(); err != nil {
		return err
	}
	if b.steps, err = createSteps(); err != nil {
		return err
	}
	if b.logs, err = createUnnamedFile(); err != nil {
		return err
	}
	b.freezers = newFreezers(b.nodes)
	if b.freezers == nil {
		b.notes = append(b.notes, "no writable control groups: a node is frozen by SIGSTOP instead")
	}
	if err := b.mountDisk(); err != nil {
		return err
	}
	switch b.network, err = netns.New(ctx, b.nodes); {
	case b.dsn != "":
		b.notes = append(b.notes, "the server is not ours: its processes, its disk and its clock are left alone, and all nodes use relays")
		b.closeNetwork()
	case err != nil:
		b.notes = append(b.notes, fmt.Sprintf("no network namespaces (%v): all nodes use relays", err))
	}
	if b.admin = b.dsn; b.dsn == "" {
		if err := b.startServer(ctx); err != nil {
			return err
		}
	}
	if b.backend, err = postgres.New(b.admin, postgres.Config{}); err != nil {
		return err
	}
	if b.pool, err = pgxpool.New(ctx, b.admin); err != nil {
		return err
	}
	b.processors, b.schedules = processor.NewAdmin(b.backend, b.pool), cron.NewAdmin(b.backend, b.pool)
	if b.receiver, err = startReceiver(b); err != nil {
		return err
	}
	for i := range b.nodes {
		m := &member{bed: b, number: i + 1, turn: make(chan struct{}, 1)}
		if err := m.connect(); err != nil {
			return err
		}
		b.members = append(b.members, m)
	}
	return b.prepare(ctx)
}

// createUnnamedFile creates a file that is removed when its last user closes it.
func createUnnamedFile() (*os.File, error) {
	file, err := os.CreateTemp("", "tenure-chaos-")
	if err != nil {
		return nil, err
	}
	return file, os.Remove(file.Name())
}

// mountDisk makes the small disk for the server's data, and starts the caretaker.
func (b *bed) mountDisk() (err error) {
	if b.dsn == "" && os.Geteuid() == 0 {
		if b.disk, err = os.MkdirTemp("", "tenure-chaos-disk-"); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", b.disk, "tmpfs", 0, "size="+diskSize+",mode=1777"); err != nil {
			b.notes = append(b.notes, fmt.Sprintf("no small disk (%v): the disk is never full", err))
			if err := os.Remove(b.disk); err != nil {
				return err
			}
			b.disk = ""
		}
	} else if b.dsn == "" {
		b.notes = append(b.notes, "not root: the disk is never full")
	}
	b.caretaker, err = sandbox.NewCaretaker(caretaking, append([]string{b.disk}, b.freezers.paths()...)...)
	return err
}

func (b *bed) startServer(ctx context.Context) (err error) {
	if b.disk != "" { // the server's account passes through
		if err := errors.Join(os.Chmod(b.disk, 0o777|os.ModeSticky), os.Setenv("TMPDIR", b.disk)); err != nil {
			return err
		}
	}
	if b.box, err = pgserver.NewSandbox(); err != nil {
		return err
	}
	if err := os.Unsetenv("TMPDIR"); err != nil {
		return err
	}
	o := pgserver.Options{Settings: map[string]string{"max_wal_size": "64MB", "min_wal_size": "32MB", "log_disconnections": "on", "log_timezone": "GMT"}}
	if b.network != nil {
		o.Settings["listen_addresses"] = sandbox.Host + "," + b.network.Host(0)
		o.HBA = []string{"host all all " + b.network.CIDR() + " trust"}
	}
	if b.clock, err = pgserver.FindFakeClock(b.disk); err != nil {
		return err
	}
	if b.clock == nil {
		b.notes = append(b.notes, "no libfaketime: the server's clock is left alone")
	} else {
		o.Environment = b.clock.Environment()
	}
	if b.server, err = b.box.Start(ctx, o); err != nil {
		return err
	}
	b.admin = b.server.DSN()
	return nil
}

// prepare makes the tables of the nodes' work.
func (b *bed) prepare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var tables int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
		return err
	}
	if tables > 0 {
		return fmt.Errorf("the database has %d tables: name an empty one", tables)
	}
	b.clears = b.dsn != ""
	_, err = conn.Exec(ctx, `
		CREATE TABLE chaos_heads (role text PRIMARY KEY, position bigint NOT NULL) WITH (fillfactor = 30);
		CREATE TABLE chaos_ledger (role text, position bigint, term bigint, sequence bigint, PRIMARY KEY (role, position));
		CREATE TABLE chaos_ticks (run bigint, attempt integer);
		CREATE TABLE chaos_applied (id text);
		CREATE TABLE chaos_letters (id text);
		CREATE TABLE chaos_poison (everywhere boolean PRIMARY KEY);
		CREATE TABLE chaos_total (amount bigint NOT NULL) WITH (fillfactor = 30);
		CREATE TABLE chaos_load (x text);
		INSERT INTO chaos_total VALUES (0)`)
	for i := range b.roles {
		if err == nil {
			_, err = conn.Exec(ctx, "INSERT INTO chaos_heads VALUES ($1, 0)", roleName(i+1))
		}
	}
	return err
}

// kinds lists the kinds of faults that can be made here.
func (b *bed) kinds() []script.Kind {
	var missing script.Need
	if b.server == nil {
		missing |= script.Server
	}
	if b.disk == "" {
		missing |= script.SmallDisk
	}
	if b.clock == nil {
		missing |= script.FakeClock
	}
	if b.nodes == 1 && b.network != nil {
		missing |= script.Relay
	}
	var all []script.Kind
	for _, k := range script.Kinds {
		if k.Needs&missing == 0 {
			all = append(all, k)
		}
	}
	return all
}

// relayed reports whether a node, counted from 1, reaches the server through a relay:
// every second one does, and the others are in namespaces.
func (b *bed) relayed(number int) bool { return b.network == nil || number%2 == 0 }

// connect gives a member its way to the server.
func (m *member) connect() error {
	address, err := url.Parse(m.bed.admin)
	if err != nil {
		return err
	}
	if m.bed.relayed(m.number) {
		if m.relay, err = faultwire.Start(address.Host); err != nil {
			return err
		}
		address.Host = m.relay.Addr()
	} else {
		address.Host = net.JoinHostPort(m.bed.network.Host(0), strconv.Itoa(m.bed.server.Port))
	}
	query := address.Query()
	query.Set("connect_timeout", "2")
	address.RawQuery = query.Encode()
	m.dsn = address.String()
	return nil
}

// close ends everything and removes what was made.
func (b *bed) close() error {
	var failed error
	for _, m := range b.members {
		m.kill()
		if m.relay != nil {
			failed = errors.Join(failed, m.relay.Close())
		}
	}
	if b.receiver != nil {
		b.receiver.close()
	}
	if b.pool != nil {
		b.pool.Close()
	}
	if b.backend != nil {
		if b.clears {
			failed = errors.Join(failed, b.clear())
		}
		b.backend.Close()
	}
	b.signalServer(syscall.SIGCONT)
	if b.box != nil {
		failed = errors.Join(failed, b.box.Close())
	}
	failed = errors.Join(failed, b.clock.Close())
	b.closeNetwork()
	if b.caretaker != nil {
		failed = errors.Join(failed, b.caretaker.Close())
	}
	if b.steps != nil {
		failed = errors.Join(failed, b.steps.Close(), os.Remove(b.steps.Name()))
	}
	for _, file := range []*os.File{b.lines, b.logs} {
		if file != nil {
			failed = errors.Join(failed, file.Close())
		}
	}
	return failed
}

// clear removes from a server that is not ours what the run has made.
func (b *bed) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), injectTime)
	defer cancel()
	var err error
	until(ctx, injectTime, func() bool { // the server may still hold sessions of nodes that were killed
		err = b.backend.MigrateDown(ctx, "all", 0)
		return err == nil
	})
	return errors.Join(err, b.execute(ctx,
		"DROP TABLE IF EXISTS chaos_heads, chaos_ledger, chaos_ticks, chaos_applied, chaos_letters, chaos_poison, chaos_total, chaos_load"))
}

func (b *bed) closeNetwork() {
	if b.network != nil {
		if err := b.network.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "chaos: removing the network:", err)
		}
		b.network = nil
	}
}

// recordViolation records something that must not happen.
func (b *bed) recordViolation(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history.Complaints = append(b.history.Complaints, fmt.Sprintf(format, args...))
}

// diskSize is enough for an hour of a run.
const diskSize = "1g"

// until polls for a condition.
func until(ctx context.Context, limit time.Duration, so func() bool) bool {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(limit); !so(); {
		if time.Now().After(deadline) {
			return false
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// keep copies the reports and the logs of the nodes, and the server's log, to a
// directory.
func (b *bed) keep(directory string) error {
	var failed error
	for name, file := range map[string]*os.File{"reports.jsonl": b.lines, "nodes.log": b.logs} {
		content, err := io.ReadAll(io.NewSectionReader(file, 0, math.MaxInt64))
		failed = errors.Join(failed, err, os.WriteFile(filepath.Join(directory, name), content, 0o644)) //nolint:gosec // it is for reading
	}
	if b.server != nil {
		log, err := os.ReadFile(b.server.LogPath())
		failed = errors.Join(failed, err, os.WriteFile(filepath.Join(directory, "server.log"), log, 0o644)) //nolint:gosec // it is for reading
	}
	return failed
}
