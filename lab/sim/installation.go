package sim

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/steps"
)

// An operator may remove the schema while nodes are running. The next session creates
// it again, as another installation with other keys. So every session holds a lock of
// the schema's name, shared, until it ends, and a session that creates an installation
// needs that lock exclusively.

var errNoTables = errors.New("relation does not exist")

// How long Open waits until it may create the installation, and how often it tries.
const (
	installationWait  = 3 * time.Second
	installationPause = 20 * time.Millisecond
)

// drop removes the schema with its contents, once no transaction holds a row.
func (s *server) drop() {
	s.stopCalls()
	s.restore(snapshot{roles: map[string]*roleRow{}, nodes: map[uuid.UUID]*nodeRow{}, cursors: map[string]int64{}, dropped: true})
	s.world.log("server", "the schema is removed")
}

// enter reports whether a session may open, and creates the schema if it does not
// exist and its lock is free.
func (s *server) enter() bool {
	if !s.dropped {
		return true
	}
	if len(s.backends) > 0 && !s.defects.NoInstallationLock {
		return false
	}
	s.dropped, s.installed = false, s.newInstallation()
	s.life.born, s.life.byMigration = s.clock(), true
	s.emit(steps.Step{Kind: steps.Recreates})
	s.world.log("server", "the schema is made anew")
	return true
}

func (s *server) newInstallation() (id uuid.UUID) {
	for i := range id {
		id[i] = byte(s.rnd.below(256))
	}
	return id
}

// isStranded reports whether the installation of b is gone.
func (b *backend) isStranded() bool {
	return b.server.dropped || b.installed != b.server.installed
}

// stranded is the error of a statement of a session whose installation is gone.
func (st *statement) stranded() error {
	switch st.name {
	case "heartbeat":
		return tenure.ErrSuperseded
	case "unlock", "notify":
		return nil
	default:
		return errNoTables
	}
}

// dropSchema removes the schema as an operator would, unless a session is stuck: there
// might be no node left that could end it. The server does not lose its locks from one
// longest lease before that until the schema exists again: the lock of the schema's
// name would be among them, and no row is left that says how long to wait.
func (s *storm) dropSchema(m *Machine) {
	server := s.world.server
	if s.over || !server.up || server.dropped || server.life.up() > 0 && server.clock() < server.life.up()+5*s.lease {
		return
	}
	for _, b := range server.backends {
		if b.stuck {
			return
		}
	}
	for _, t := range server.open {
		if t.fencing { // its lock is waited for
			s.world.after(installationPause, func() { s.dropSchema(m) })
			return
		}
	}
	server.drop()
}
