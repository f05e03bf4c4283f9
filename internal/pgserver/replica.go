package pgserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"time"
)

// ReplicaOptions says what streaming replica to make of a server.
type ReplicaOptions struct {
	// Settings override those of the primary.
	Settings map[string]string
	// Synchronous makes the primary wait for this replica, and for no other, at
	// every commit.
	Synchronous bool
}

// Replica copies the running server and starts the copy as its streaming
// replica. The replica accepts queries when Replica returns; whether it streams
// already, only the primary knows, in pg_stat_replication under the replica's
// [Server.Name].
func (s *Server) Replica(ctx context.Context, options ReplicaOptions) (*Server, error) {
	s.mu.Lock()
	settings := maps.Clone(s.settings)
	s.mu.Unlock()

	replica, err := s.sandbox.newServer(s.Installation, Options{HBA: s.hba})
	if err != nil {
		return nil, err
	}
	if err := s.backUp(ctx, replica.Data); err != nil {
		return nil, err
	}
	replica.settings = settings
	delete(replica.settings, "synchronous_standby_names")
	maps.Copy(replica.settings, options.Settings)
	replica.settings["primary_conninfo"] = fmt.Sprintf("host=%s port=%d user=%s application_name=%s",
		s.Host, s.Port, Superuser, replica.Name())
	if err := replica.write("standby.signal", ""); err != nil {
		return nil, err
	}

	s.sandbox.add(replica)
	if err := replica.Start(ctx); err != nil || !options.Synchronous {
		return replica, err
	}
	return replica, s.Configure(map[string]string{"synchronous_standby_names": replica.Name()})
}

// Name is what a replica calls itself to its primary.
func (s *Server) Name() string { return "server_" + filepath.Base(filepath.Dir(s.Data)) }

// Promote makes a replica a primary and waits until it is one.
func (s *Server) Promote(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return errors.New("the server is stopped")
	}
	limit := startTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = max(time.Until(deadline), time.Second)
	}
	return s.sandbox.files.Execute(ctx, s.Installation.program("pg_ctl"), "promote", "--wait",
		"--pgdata", s.Data, "--timeout", strconv.Itoa(int(limit.Seconds())), "--silent")
}
