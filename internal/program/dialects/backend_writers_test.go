package dialects

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/lease"
)

// writersCluster is an installation on a server that reports other servers that accept
// writes. Connections with another server_id see another server with the same data.
func writersCluster(t *testing.T) *cluster {
	t.Helper()
	server := mariatest.Start(t, mariatest.Options{Settings: map[string]string{"wsrep_on": "ON"}})
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.dialect == lease.MySQL })]
	return clusterOn(t, k, server.DSN(server.Database(t)))
}

const onAnotherServer = "?server_id=4711"

// If several servers accept writes, nodes use one at a time.
func TestBackendSeveralWritersAreUsedOneAtATime(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	c := writersCluster(t)
	a := c.join("a")
	term := leads(t, a.campaign(backendRole))

	other := c.kind.connect(t, c.source+onAnotherServer)
	config := c.config
	config.Name = "b"
	refused, err := tenure.Open(soon(t), newBackend(t, other, c.kind.dialect, lease.Config{}), config)
	if err == nil {
		_ = refused.Close(soon(t))
	}
	if !errors.Is(err, tenure.ErrRefused) || !strings.Contains(err.Error(), `node "a"`) {
		t.Fatalf("a node on another server: %v; want ErrRefused that names the node on the first", err)
	}
	if !term.Valid() {
		t.Error("the refused node ended the term")
	}

	left := time.Now()
	a.leave()
	next := leads(t, c.joinOn("b", other).campaign(backendRole))
	if waited := time.Since(left); waited < c.config.Lease || next.Number() <= term.Number() {
		t.Errorf("term %d follows term %d after %v; want a lease, %v", next.Number(), term.Number(), waited, c.config.Lease)
	}
}

// A session ends after the nodes have moved to another server, by whose clock its lease had
// expired.
// Set by hand: the clocks of two servers on one machine do not differ.
func TestBackendSeveralWritersMoveEndsSessions(t *testing.T) {
	t.Parallel()
	c := writersCluster(t)
	term := leads(t, c.join("a").campaign(backendRole))
	execute(t, c.kind.connect(t, c.source), "UPDATE tenure_lease_news SET server = 'another'")
	if cause := ended(t, term); !errors.Is(cause, tenure.ErrSuperseded) {
		t.Errorf("the term ended with %v; want ErrSuperseded", cause)
	}
}

// A fence on another server would lock a row without effect on the next leader.
func TestBackendSeveralWritersFenceOnOtherServerFails(t *testing.T) {
	t.Parallel()
	c := writersCluster(t)
	term := leads(t, c.join("a").campaign(backendRole))
	for source, want := range map[string]error{c.source: nil, c.source + onAnotherServer: tenure.ErrFenced} {
		err := lease.InTx(soon(t), c.kind.connect(t, source), nil, term, func(*sql.Tx) error { return nil })
		if !errors.Is(err, want) {
			t.Errorf("a transaction at %s: %v; want %v", source, err, want)
		}
	}
}

// The finding names the setting.
func TestBackendSeveralWritersAreDiagnosed(t *testing.T) {
	t.Parallel()
	c := writersCluster(t)
	findings := newBackend(t, c.kind.connect(t, c.source), c.kind.dialect, lease.Config{}).Diagnose(soon(t))
	if !slices.ContainsFunc(findings, func(f doctor.Finding) bool {
		return f.Name == "writers" && f.Severity == doctor.Warning && strings.Contains(f.Detail, "wsrep_on = ON")
	}) {
		t.Errorf("no warning about several writers in %+v", findings)
	}
}
