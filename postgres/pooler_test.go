package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/doctor"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// Pgpool-II is refused in each of its modes. In raw mode a write leaves the
// session in a transaction, which no other session can see.
func TestPgpoolIsRefused(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	replica := server.Replica(t, pgtest.ReplicaOptions{})
	others := []*pgtest.Server{replica}
	for name, options := range map[string]pgtest.PgpoolOptions{
		"raw":                        {Mode: "raw"},
		"streaming replication":      {Mode: "streaming_replication", Others: others},
		"load balancing":             {Mode: "streaming_replication", LoadBalance: true, Others: others},
		"native replication":         {Mode: "native_replication"},
		"snapshot isolation":         {Mode: "snapshot_isolation"},
		"logical replication":        {Mode: "logical_replication"},
		"slony":                      {Mode: "slony"},
		"raw, reads on another host": {Mode: "raw", LoadBalance: true, Others: others},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through := server.Pgpool(t, options).DSN
			b := backendOn(t, through(server.DSN()), Config{})
			_, err := tryOpen(t, b)
			checkPooled(t, "a session", err)
			_, err = b.Leaders(t.Context())
			checkPooled(t, "a question", err)
			checkPooled(t, "a migration", b.Migrate(t.Context()))
			checkPooled(t, "notifications", b.Listen(t.Context(), func() {}))
			refused := false
			for _, f := range b.Diagnose(t.Context()) {
				refused = refused || f.Severity == doctor.Failure && f.Name == "pooler"
			}
			if !refused {
				t.Errorf("the diagnosis names no pooler: %+v", b.Diagnose(t.Context()))
			}
		})
	}
}

func checkPooled(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, dberr.ErrPooled) || !strings.Contains(err.Error(), "Connect directly to PostgreSQL") {
		t.Errorf("%s: %v; want ErrPooled and what to do", what, err)
	}
}

// Whatever is between the node and the server: a session that is not idle after
// one of its statements commits nothing that other sessions could see.
func TestSessionInTransactionIsLost(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	p.take("scheduler")
	p.beat()
	p.interfere("BEGIN")
	if _, err := p.Heartbeat(tenure.Load{}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("a heartbeat within a transaction: %v; want ErrSuperseded", err)
	}
	other := open(t, b)
	other.interfere("BEGIN")
	if _, err := other.TryAcquire([]tenure.AcquireRequest{{Role: tenure.NamedRole("other")}}); !errors.Is(err, tenure.ErrSuperseded) {
		t.Errorf("an attempt within a transaction: %v; want ErrSuperseded", err)
	}
}
