package lease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/lease/internal/sqldb"
)

// If several servers accept writes (Galera, Group Replication with several primaries),
// each one has its own clock, can read less than another one has acknowledged, and has
// its own row locks. Nodes therefore use one server at a time. A session opens on
// another server only when no lease is left on the last one, and the sessions of the
// last server end at their next heartbeat.

// multiPrimaryQuery finds a setting of a server in a group of several writers.
const multiPrimaryQuery = `
SHOW GLOBAL VARIABLES
WHERE Variable_name = 'wsrep_on' AND Value = 'ON'
    OR Variable_name = 'group_replication_single_primary_mode' AND Value = 'OFF'`

// multiPrimarySetting returns a setting of a server in a group of several writers, or "".
func (b *Backend) multiPrimarySetting(ctx context.Context, on sqldb.Querier) (setting string, err error) {
	if b.db.Dialect != sqldb.MySQL {
		return "", nil
	}
	err = sqldb.ForEach(ctx, on, multiPrimaryQuery, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		setting = name + " = " + value
		return err
	})
	return setting, err
}

// adoptServer makes this server the one in use by nodes, if several servers accept writes.
// It returns an error while another server has live leases.
func (s *session) adoptServer(ctx context.Context, on sqldb.Querier) error {
	setting, err := s.backend.multiPrimarySetting(ctx, on)
	if err != nil || setting == "" {
		return err
	}
	s.pinned = true
	at, present, err := s.readServer(ctx, on)
	if err != nil || at.name == present {
		return err
	}
	if err := s.backend.refuseLiveNodesOn(ctx, on, at.name, present, setting); err != nil {
		return err
	}
	return sqldb.Exec(ctx, on, s.backend.sql(setServerQuery), present, at.name)
}

// refuseLiveNodesOn returns an error if a node has a live lease on the last server.
func (b *Backend) refuseLiveNodesOn(ctx context.Context, on sqldb.Querier, last, present, setting string) error {
	living, err := b.liveNodes(ctx, on)
	if err != nil || len(living) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s uses the server %s, and this is %s, with %s: connect all nodes to one server, or wait until its leases have expired",
		tenure.ErrRefused, living[0], last, present, setting)
}

// checkServer returns an error if the nodes have moved to another server.
func (s *session) checkServer(ctx context.Context) error {
	if !s.pinned {
		return nil
	}
	return s.backend.db.Read(ctx, "read the server", func(ctx context.Context, on sqldb.Querier) error {
		at, _, err := s.readServer(ctx, on)
		if err == nil && at.name != s.server {
			err = errSessionEnded()
		}
		return err
	})
}
