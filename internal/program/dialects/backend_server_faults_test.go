package dialects

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/mariatest"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/lease"
)

// brokenServer is a server of one test, behind a network that can fail.
type brokenServer struct {
	kind    kind
	source  string // through the network
	network *faultwire.Proxy
	stop    func() // as in a crash
	start   func()
}

// withNetwork puts a network that can fail in front of a server.
func withNetwork(t *testing.T, k kind, address, source string) brokenServer {
	t.Helper()
	network, err := faultwire.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return brokenServer{kind: k, network: network, source: strings.Replace(source, address, network.Addr(), 1)}
}

// ownMariaDB starts a server for one test.
func ownMariaDB(t *testing.T) brokenServer {
	t.Helper()
	server := mariatest.Start(t, mariatest.Options{})
	server.Execute(t, "CREATE DATABASE leases")
	address, err := url.Parse(server.URL("leases"))
	if err != nil {
		t.Fatal(err)
	}
	b := withNetwork(t, kinds[3], address.Host, server.DSN("leases"))
	b.stop = func() { server.Stop(t, "kill") }
	b.start = func() { server.Start(t) }
	return b
}

// ownPostgreSQL starts a server for one test.
func ownPostgreSQL(t *testing.T) brokenServer {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{})
	address, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	b := withNetwork(t, kinds[0], address.Host, server.DSN())
	b.stop = func() { server.Stop(t, "immediate") }
	b.start = func() { server.Start(t) }
	return b
}

// onBrokenServers runs a test with two nodes on each kind of broken server. A short run
// has one kind if the lease is so long that the test mostly waits.
func onBrokenServers(t *testing.T, length time.Duration, test func(t *testing.T, s brokenServer, c *cluster, a, b *tenure.Election)) {
	t.Helper()
	for _, server := range []struct {
		name string
		open func(t *testing.T) brokenServer
	}{{"MariaDB", ownMariaDB}, {"PostgreSQL", ownPostgreSQL}} {
		t.Run(server.name, func(t *testing.T) {
			if server.name == "MariaDB" && length > 3*time.Second {
				pgtest.Long(t)
			}
			t.Parallel()
			s := server.open(t)
			c := clusterOn(t, s.kind, s.source)
			c.config.Lease, c.config.CheckInterval = length, 500*time.Millisecond
			a, b := c.join("a").campaign(backendRole), c.join("b").campaign(backendRole)
			oneLeader(t, a, b)
			test(t, s, c, a, b)
		})
	}
}

// While the server is down, trust ends in time. Afterwards a node leads again.
func TestBackendServerCrashEndsTrust(t *testing.T) {
	t.Parallel()
	onBrokenServers(t, 2*time.Second, func(t *testing.T, s brokenServer, c *cluster, a, b *tenure.Election) {
		for last := int64(0); last < 2; {
			term := leaderOf(t, last, a, b)
			last = term.Number()
			s.stop()
			_ = c.endsInTime(term, time.Now())
			s.start()
			back := time.Now()
			leaderOf(t, last, a, b)
			t.Logf("%s: a node led %v after the server was back", s.kind.name, time.Since(back))
		}
		c.logged.wants(t, tenure.ErrConnection)
	})
}

// A session keeps no connection, so a term outlives them.
func TestBackendTermSurvivesCutConnections(t *testing.T) {
	t.Parallel()
	const length = 6 * time.Second // a busy machine must not miss this lease
	onBrokenServers(t, length, func(t *testing.T, s brokenServer, _ *cluster, a, b *tenure.Election) {
		term := leaderOf(t, 0, a, b)
		before := len(s.network.Connections())
		for _, conn := range s.network.Connections() {
			conn.Cut()
		}
		testkit.Await(t, "new connections", func() bool { return len(s.network.Connections()) > 0 })
		<-time.After(length) // the heartbeats before the cut no longer count
		if !term.Valid() {
			t.Errorf("%d connections were cut, and the term did not outlive it", before)
		}
	})
}

// If the server does not respond, or its answers are lost, trust ends in time and no call
// hangs.
func TestBackendSilentServerEndsTrust(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	for _, lost := range []struct {
		name       string
		directions []faultwire.Direction
	}{
		{"both ways", nil},
		{"answers only", []faultwire.Direction{faultwire.ToClient}},
	} {
		t.Run(lost.name, func(t *testing.T) {
			t.Parallel()
			onBrokenServers(t, 2*time.Second, func(t *testing.T, s brokenServer, c *cluster, a, b *tenure.Election) {
				term := leaderOf(t, 0, a, b)
				s.network.Stall(lost.directions...)
				_ = c.endsInTime(term, time.Now())
				backend := newBackend(t, s.kind.connect(t, s.source), s.kind.dialect, lease.Config{})
				begun := time.Now()
				if _, err := backend.Leaders(limited(t, time.Second)); err == nil {
					t.Error("a silent server answered")
				}
				if took := time.Since(begun); took > time.Second+slack {
					t.Errorf("a question with one second took %v", took)
				}
				<-time.After(c.config.Lease) // more attempts than one are lost
				s.network.Resume()
				back := time.Now()
				leaderOf(t, term.Number(), a, b)
				t.Logf("%s: a node led %v after the server responded again", s.kind.name, time.Since(back))
				c.logged.wants(t, tenure.ErrConnection)
			})
		})
	}
}

func TestBackendPausedServerEndsTrust(t *testing.T) {
	t.Parallel()
	server := mariatest.Start(t, mariatest.Options{})
	server.Execute(t, "CREATE DATABASE leases")
	c := clusterOn(t, kinds[3], server.DSN("leases"))
	c.config.Lease = 2 * time.Second
	a, b := c.join("a").campaign(backendRole), c.join("b").campaign(backendRole)
	oneLeader(t, a, b)
	term := leaderOf(t, 0, a, b)
	server.Pause(t)
	_ = c.endsInTime(term, time.Now())
	server.Resume(t)
	leaderOf(t, term.Number(), a, b)
}
