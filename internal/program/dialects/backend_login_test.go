package dialects

import (
	"errors"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// A wrong user or password is a failed connection, as with sessions, and no missing
// privilege.
func TestBackendWrongPasswordIsNoMissingPrivilege(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := mariatest.Shared(t)
	source := server.DSN(server.Database(t))
	wrong := strings.Replace(source, "root@", "nobody:secret@", 1)
	backend := newBackend(t, kinds[3].connect(t, wrong), lease.MySQL, lease.Config{})
	_, err := backend.Leaders(soon(t))
	if !errors.Is(err, tenure.ErrConnection) || errors.Is(err, dberr.ErrPrivilege) || !strings.Contains(err.Error(), "Access denied") {
		t.Errorf("with a wrong password: %v; want ErrConnection and the server's text", err)
	}
	found := backend.Diagnose(soon(t))
	if len(found) == 0 || strings.Contains(found[0].Detail, dberr.ErrPrivilege.Error()) || !strings.Contains(found[0].Detail, "Access denied") {
		t.Errorf("doctor: %+v; want the server's text", found)
	}
}
