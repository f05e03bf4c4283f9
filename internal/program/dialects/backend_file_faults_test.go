package dialects

import (
	"errors"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/dberr"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
	"github.com/exactly-one/tenure/retry"
)

// sqliteKind is SQLite among the kinds.
var sqliteKind = kinds[2]

// While another program keeps the file locked, trust ends in time. Afterwards a node leads
// again.
func TestBackendLockedFileEndsTrust(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sqliteKind)
	c.config.Lease = 3 * time.Second
	a, b := c.join("a").campaign(backendRole), c.join("b").campaign(backendRole)
	oneLeader(t, a, b)
	testkit.Await(t, "a node leads", func() bool { return a.IsLeader() || b.IsLeader() })
	term := a.Term()
	if term == nil {
		term = b.Term()
	}
	db := c.kind.connect(t, c.source)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	locked := time.Now()
	if cause := c.endsInTime(term, locked); !errors.Is(cause, tenure.ErrTrustExpired) {
		t.Errorf("the term ended with %v; want ErrTrustExpired", cause)
	}
	c.logged.wants(t, dberr.ErrBusy)
	backend := newBackend(t, db, lease.SQLite, lease.Config{})
	request := tenure.Request{Kind: tenure.RequestStepDown, Role: backendRole}
	begun := time.Now()
	if err := backend.Request(limited(t, 500*time.Millisecond), request); !errors.Is(err, dberr.ErrBusy) {
		t.Errorf("a request to a locked file: %v; want ErrBusy", err)
	}
	if took := time.Since(begun); took > 5*time.Second { // the pool would wait for 10 s
		t.Errorf("a request with half a second took %v", took)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "a node leads again", func() bool { return a.IsLeader() || b.IsLeader() })
}

// A node whose file becomes read-only loses its term in time and logs the reason. When the
// file is writable again, the node recovers.
func TestBackendReadOnlyFileEndsTrust(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sqliteKind)
	c.config.Lease = 3 * time.Second
	db := c.kind.connect(t, c.source)
	db.SetMaxOpenConns(1) // which keeps what is set below
	a := c.joinOn("a", db).campaign(backendRole)
	term := leads(t, a)
	execute(t, db, "PRAGMA query_only = 1")
	_ = ended(t, term)
	c.logged.wants(t, dberr.ErrReadOnly)
	execute(t, db, "PRAGMA query_only = 0")
	if next := leads(t, a); next.Number() <= term.Number() {
		t.Errorf("Invariant 2: term %d came after term %d", next.Number(), term.Number())
	}

	readOnly := newBackend(t, c.kind.connect(t, c.source+"&mode=ro"), lease.SQLite, lease.Config{})
	c.config.Retry = retry.Func(func(retry.Failure) (time.Duration, bool) { return 0, false })
	node, err := tenure.Open(soon(t), readOnly, c.config)
	if !errors.Is(err, dberr.ErrReadOnly) {
		t.Errorf("opening a node on a read-only file: %v; want ErrReadOnly", err)
	}
	if node != nil {
		_ = node.Close(soon(t))
	}
	if leaders, err := readOnly.Leaders(soon(t)); err != nil || len(leaders) != 1 {
		t.Errorf("reading from a read-only file: %v, %v", leaders, err)
	}
}

// On a full disk, trust ends in time and the log has the reason. When there is space again,
// the node recovers.
func TestBackendFullDiskEndsTrust(t *testing.T) {
	t.Parallel()
	c := newCluster(t, sqliteKind)
	c.config.Lease = 3 * time.Second
	p := c.launch(childFills, "full")
	if r := p.await("full"); r.Error != "" {
		t.Error(r.Error)
	}
	<-p.ended
	if err := p.command.Wait(); err != nil {
		t.Error(err)
	}
}
