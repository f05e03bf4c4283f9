// Package postgres runs elections on PostgreSQL 14 and later: a tenure.Backend, and the
// fencing of transactions.
//
// A node has two connections. On the session connection it sends heartbeats and holds
// advisory locks: one for each led role, and one for the node. The server ends the
// session after one lease of silence. On the watch connection the node waits for the lock
// of its predecessor in a ring, and so learns of a death within milliseconds. Neither
// connection may go through a pooler in transaction mode: Open refuses a pooler with
// dberr.ErrPooled.
//
// [InTx] runs a transaction and commits it only while a term is valid. [Fence] and
// [FenceSQL] do the same for the caller's own transactions.
package postgres

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/clocks"
	"github.com/exactly-one/tenure/internal/pgdial"
	"github.com/exactly-one/tenure/internal/schema"
	"github.com/exactly-one/tenure/internal/wakeup"
	"github.com/exactly-one/tenure/postgres/internal/diagnosis"
	"github.com/exactly-one/tenure/postgres/internal/install"
	"github.com/exactly-one/tenure/postgres/internal/link"
	"github.com/exactly-one/tenure/postgres/internal/memory"
	"github.com/exactly-one/tenure/postgres/internal/records"
	"github.com/exactly-one/tenure/postgres/internal/server"
)

// Backend is elections on one PostgreSQL database. It implements
// [tenure.Backend] and is safe for concurrent use.
type Backend struct {
	config       Config
	connect      *link.Connector
	names        link.Names
	reader       link.Reader
	installation *install.Installation
	records      *records.Records
	examiner     *diagnosis.Examiner

	counters counters
	recent   memory.RecentTerms

	failedOpenings memory.FailedOpenings
	lineages       server.Lineages
	taken          memory.TakenRequests

	// running counts the goroutines of all sessions.
	running wakeup.Group
}

var _ tenure.Backend = (*Backend)(nil)

// New makes a backend for a database. It does not connect. The connection string is a URL
// or key=value pairs, completed by the environment variables and the service file of
// libpq. It must lead directly to PostgreSQL, not to a pooler. It may name several hosts:
// the primary is used. New refuses parameters it can neither honor nor ignore. An error
// matches tenure.ErrInvalidConfig and never contains the connection string.
func New(dsn string, config Config) (*Backend, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	target, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	connect := &link.Connector{
		Config: target, Login: pgdial.Credentials{DSN: dsn, Password: config.Password},
		Program: config.ApplicationName, Hook: config.Connect, Dialer: pgdial.New(clocks.System()),
	}
	b := &Backend{config: config, connect: connect, names: link.NewNames(config.Schema, config.Prefix, target.User)}
	b.installation = &install.Installation{
		Names: b.names, Core: core, Schema: schema.New(b.names.Names, config.ManualMigrations, upper{b}),
		Connector: connect, Reader: &b.reader, Manual: config.ManualMigrations,
	}
	b.records = &records.Records{Names: b.names, Reader: &b.reader, Installation: b.installation, Running: &b.running}
	b.examiner = &diagnosis.Examiner{
		Names: b.names, Reader: &b.reader, Installation: b.installation, Records: b.records,
		Open: b.openRehearsal, LocksIgnored: ErrLocksIgnored,
	}
	b.reader.Init(connect, b.names, &b.running, b.installation.RefuseNewer)
	return b, nil
}

// Close closes the connection for reads and waits for the goroutines of sessions.
// Close the node first. Close may be called more than once.
func (b *Backend) Close() {
	b.reader.Close()
	b.running.Wait()
}

var _ tenure.Listener = (*Backend)(nil)

// Listen implements [tenure.Listener]: it calls wake, in this goroutine, once when it has
// begun to listen, and after each possible change of the elections or the nodes of the
// schema. It uses a separate connection and no privilege beyond connecting. It returns
// nil when ctx ends, and an error when it can no longer listen. Notifications can be lost
// before it returns, so poll at intervals too.
func (b *Backend) Listen(ctx context.Context, wake func()) error {
	return b.connect.Listen(ctx, wake, b.names.ElectionsChannel(), b.names.NodesChannel())
}

// Stats are figures about a backend, for monitoring, counted since [New].
type Stats struct {
	// WatchCalls counts the calls of this backend's nodes on their watch
	// connections: one call per 30 s, and one for each change of the cluster.
	WatchCalls    uint64
	WatchFailures uint64 // failed watch connections
	// Fenced counts the transactions refused with tenure.ErrFenced, because the term had
	// ended.
	Fenced uint64
}

// counters are the counts of a backend. Its methods take no lock.
type counters struct {
	watchCalls, watchFailures, fenced atomic.Uint64
}

// refused counts an error of fencing, and returns it.
func (c *counters) refused(err error) error {
	if errors.Is(err, tenure.ErrFenced) {
		c.fenced.Add(1)
	}
	return err
}

// Stats returns the current figures. It uses no database, and never waits.
func (b *Backend) Stats() Stats {
	return Stats{b.counters.watchCalls.Load(), b.counters.watchFailures.Load(), b.counters.fenced.Load()}
}
