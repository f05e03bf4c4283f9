package acceptance_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// At rest a node costs the same whatever the number of its elections and of the other
// nodes. Here heartbeats are rarer than check intervals, so a candidate makes one attempt
// for each 1,000 roles at every check interval.
func TestIdleLoadDoesNotGrowWithElections(t *testing.T) {
	t.Parallel()
	const (
		refresh = lease / 3
		period  = 10 * time.Second
	)
	for _, c := range []struct{ elections, nodes int }{{1, 2}, {1, 6}, {1000, 2}, {2500, 2}} {
		elections := c.elections
		t.Run(fmt.Sprintf("%d elections, %d nodes", elections, c.nodes), func(t *testing.T) {
			if elections == 1000 || c.nodes > 2 {
				pgtest.Long(t)
			}
			t.Parallel()
			nodes := c.nodes
			c := newCluster(t)
			c.config.Retry = nil // the check interval is what matters here
			meters := map[string]*meter{}
			admin := pgtest.Conn(t, c.dsn)
			for i := range nodes {
				name := fmt.Sprintf("idle%d-%d-%d", i, elections, nodes)
				if i == 0 {
					name = fmt.Sprintf("busy-%d-%d", elections, nodes)
				}
				meters[name] = newMeter()
				c.db.Connect = meters[name].connect
				m := c.open(name, nil)
				campaign(t, m, elections)
				if i == 0 {
					eventually(t, admin, "SELECT count(*) = $1 FROM "+c.quoted("terms")+" WHERE ended_at IS NULL AND term > 0", elections)
				}
			}
			calls := (elections + 999) / 1000 // to take roles, at each check interval
			settle(t, meters, calls)
			before := map[string]map[string]int{}
			for name, m := range meters {
				before[name] = m.counts()
			}
			rest := time.NewTimer(period)
			<-rest.C
			for name, m := range meters {
				polls := float64(period) / float64(checkInterval) * float64(calls)
				if name[:4] == "busy" {
					polls = 0
				}
				beats := float64(period) / float64(refresh)
				counts := m.counts()
				t.Logf("%s, %d elections, in %v:", name, elections, period)
				for statement, n := range counts {
					n -= before[name][statement]
					want := map[string]float64{"heartbeat": beats, "take": polls, "watch": float64(period) / float64(30*time.Second)}[statement]
					if n > 0 {
						t.Logf("    %-12s %d", statement, n)
					}
					if statement == "lock_usage" && elections > 2000 && float64(n) <= polls*1.1+1 {
						continue // elections use more than a quarter of the server's lock table
					}
					if float64(n) > want*1.1+1 || float64(n) < want*0.7-1 {
						t.Errorf("%s ran %q %d times in %v, want about %.1f", name, statement, n, period, want)
					}
				}
				connections := value[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tenure ' || $1 || ' %'", name)
				if connections != 2 {
					t.Errorf("%s has %d connections, want 2", name, connections)
				}
			}
		})
	}
}

// settle waits until no node makes the attempts that follow a notification, such as that of
// the last joining: for many roles they take seconds on a busy machine.
func settle(t *testing.T, meters map[string]*meter, calls int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for quiet := 0; quiet < 2; {
		before := map[string]int{}
		for name, m := range meters {
			before[name] = m.counts()["take"]
		}
		<-time.After(checkInterval)
		quiet++
		for name, m := range meters {
			n := m.counts()["take"] - before[name]
			if n > calls {
				quiet = 0
			}
			if n > calls && time.Now().After(deadline) {
				t.Fatalf("%s still takes roles %d times in %v", name, n, checkInterval)
			}
		}
	}
}

// campaign starts elections for many roles.
func campaign(t *testing.T, m *member, elections int) {
	t.Helper()
	for i := range elections {
		e, err := m.Node.Election(tenure.NamedRole(fmt.Sprintf("%s-%04d", role, i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// meter counts the statements that a node sends, by the names under which they
// were prepared; those without a name are counted together.
type meter struct {
	mu   sync.Mutex
	sent map[string]int
}

func newMeter() *meter { return &meter{sent: map[string]int{}} }

func (m *meter) counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.sent)
}

// connect is the connect function of the node.
func (m *meter) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &meteredConn{Conn: conn, meter: m}, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// meteredConn is one of the node's connections.
type meteredConn struct {
	net.Conn
	meter   *meter
	started bool
	buffer  []byte
}

// Write counts the Bind and the Query messages among what is sent: one for each
// statement that is run.
func (c *meteredConn) Write(data []byte) (int, error) {
	const typeSize, lengthSize = 1, 4
	c.buffer = append(c.buffer, data...)
	for {
		header := typeSize
		if !c.started {
			header = 0 // the startup message has no type
		}
		if len(c.buffer) < header+lengthSize {
			break
		}
		size := header + int(binary.BigEndian.Uint32(c.buffer[header:]))
		if len(c.buffer) < size {
			break
		}
		message := c.buffer[:size]
		if c.started {
			c.count(message[0], message[header+lengthSize:])
		}
		c.started = true
		c.buffer = c.buffer[size:]
	}
	return c.Conn.Write(data)
}

func (c *meteredConn) count(kind byte, body []byte) {
	const bind, query = 'B', 'Q'
	name := "(unnamed)"
	switch kind {
	case bind: // the portal's name, then the statement's
		_, rest, _ := bytes.Cut(body, []byte{0})
		if statement, _, _ := bytes.Cut(rest, []byte{0}); len(statement) > 0 {
			name = string(statement)
		}
	case query:
	default:
		return
	}
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	c.meter.sent[name]++
}
