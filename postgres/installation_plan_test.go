package postgres

import (
	"encoding/json"
	"testing"

	"github.com/exactly-one/tenure/internal/pgtest"
)

// planNode is a part of a plan that was executed.
type planNode struct {
	Rows    float64    `json:"Actual Rows"`
	Loops   float64    `json:"Actual Loops"`
	Removed float64    `json:"Rows Removed by Filter"`
	Joined  float64    `json:"Rows Removed by Join Filter"`
	Plans   []planNode `json:"Plans"`
}

// handled returns how many rows all parts of a plan have handled.
func (p planNode) handled() (rows float64) {
	rows = (p.Rows + p.Removed + p.Joined) * p.Loops
	for _, part := range p.Plans {
		rows += part.handled()
	}
	return rows
}

// Each opening looks for sessions of another installation. If it compared the locks of all
// nodes with one another, many nodes that open together would take the cube of their number.
func TestOpeningReadsEachLockOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := open(t, b)
	const nodes = 40
	call := b.installation.StrangersCall(p.space)
	for i := range nodes {
		// Set by hand: the locks of a node whose opening would take longer.
		const locks = `SELECT pg_advisory_lock_shared($1, $2), pg_advisory_lock($3, $4)`
		if _, err := pgtest.Conn(t, b.connect.Config.ConnString()).Exec(t.Context(), locks, append(call.Args, p.incarnation+1000+int32(i))...); err != nil {
			t.Fatal(err)
		}
	}
	var text []byte
	conn := pgtest.Conn(t, b.connect.Config.ConnString())
	if err := conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+call.SQL, call.Args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	if rows := plans[0].Plan.handled(); rows < 2*nodes || rows > 20*nodes {
		t.Errorf("the check for sessions of another installation handles %.0f rows of the locks of %d nodes; want each a few times\n%s", rows, nodes, text)
	}
}

// A prepared transaction has locks and no process. A node opens beside it, and the holders of
// locks are read.
func TestNodeOpensBesidePreparedTransaction(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "1"}})
	b := backendOn(t, server.DSN(), Config{})
	p := open(t, b)
	call := b.installation.StrangersCall(p.space)
	conn := server.Conn(t)
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"BEGIN", nil},
		{"SELECT pg_advisory_xact_lock_shared($1, $2), pg_advisory_xact_lock($3::int + 1, 1)", call.Args}, // of the installation, and of a node of another one
		{"PREPARE TRANSACTION 'kept'", nil},
	} {
		if _, err := conn.Exec(t.Context(), step.sql, step.args...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tryOpen(t, b, named("second")); err != nil {
		t.Errorf("beside a prepared transaction with locks of nodes: %v", err)
	}
	if _, err := b.Holders(t.Context()); err != nil {
		t.Errorf("the holders of locks beside a prepared transaction: %v", err)
	}
}
