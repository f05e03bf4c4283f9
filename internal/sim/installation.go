package sim

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// Somebody may remove the schema under living nodes. The next session makes it
// anew, as another installation with other keys. So every session holds a lock of
// the schema's name, shared, until it ends, and who makes an installation needs it
// alone.

var errNoTables = errors.New("relation does not exist")

// How long an opening waits until it may make the installation, and how often it
// tries.
const (
	installationWait  = 3 * time.Second
	installationPause = 20 * time.Millisecond
)

// drop removes the schema with all that is in it, once no transaction holds a row.
func (s *server) drop() {
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
	s.life.born, s.life.byMigration = s.world.now(), true
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

// stranded is what a statement of a session fails with whose installation is gone.
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

// dropSchema has somebody remove the schema, unless a session is stuck: nobody
// might be left who could end it. Nor does the server forget its locks from one
// longest lease before that until the schema is there again: the lock of its name
// would be among them, and no row is left that says how long to wait.
func (s *storm) dropSchema(m *Machine) {
	server := s.world.server
	if s.over || !server.up || server.dropped || server.life.up() > 0 && s.world.now() < server.life.up()+5*s.lease {
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
