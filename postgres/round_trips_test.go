package postgres

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/internal/pgtest"
)

// maxOpening is how many round trips an opening may take in sequence, without TLS and
// without those of passwords, of which SCRAM takes two. TCP's handshake is one of them.
const maxOpening = 10

// farBackend returns a backend whose server is as far away as a round trip.
func farBackend(t testing.TB, server *pgtest.Server, roundTrip time.Duration, config Config) (*Backend, *faultwire.Proxy) {
	t.Helper()
	config.Schema = server.Schema(t)
	open(t, backendOn(t, server.DSN(), config)).Abort() // creates the tables
	proxy, err := faultwire.Start(net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.Far(roundTrip)
	dsn, err := proxy.DSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	return backendOn(t, dsn, config), proxy
}

// An opening counts from dialing to the first acknowledged heartbeat.
func TestOpeningTakesTenRoundTrips(t *testing.T) {
	t.Parallel()
	b, proxy := farBackend(t, pgtest.Shared(t), 150*time.Millisecond, Config{})
	var id uuid.UUID
	var previous int64
	for _, c := range []struct {
		name   string
		change func(*peerOptions)
	}{
		{"the first session of a node", func(*peerOptions) {}},
		{"a session after a lost one", func(o *peerOptions) { o.id, o.previous = id, previous }},
		{"a unique name", func(o *peerOptions) { o.unique = true }},
	} {
		const handshake = 1
		before := proxy.RoundTrips()
		p := open(t, b, c.change)
		p.beat()
		if got := proxy.RoundTrips() - before + handshake; got > maxOpening {
			t.Errorf("%s: got %d round trips, want at most %d", c.name, got, maxOpening)
		}
		p.take("held")
		id, previous = p.id, p.Incarnation()
		p.Abort()
	}
}

// Each answer of a slow server gives an opening the usual time again. Otherwise an opening
// over a link this slow would fail once and begin again with more time.
func TestAnswersGiveAnOpeningMoreTime(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	b, _ := farBackend(t, pgtest.Shared(t), 1300*time.Millisecond, Config{})
	b.connect.Config.ConnectTimeout = time.Minute // Set by hand: the limit of a connection is not the subject.
	node, err := tenure.Open(t.Context(), b, tenure.Config{Name: "far"})
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Stats().SessionFailures; got != 0 {
		t.Errorf("%d attempts to open the session failed, want none", got)
	}
	if err := node.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// What a takeover sends is prepared when the session opens, or when the standby first tries
// for the role.
func TestTakeoverTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	b, proxy := farBackend(t, pgtest.Shared(t), 60*time.Millisecond, Config{})
	leader := open(t, b)
	standby := open(t, b, func(o *peerOptions) { o.name = "standby" })
	leader.take("role")
	standby.refused("role")
	leader.awaitWatcher()
	leader.Abort()
	standby.wait(patience)
	conn, err := proxy.AwaitNamed(t.Context(), "tenure standby session")
	if err != nil {
		t.Fatal(err)
	}
	before := conn.RoundTrips()
	standby.win("role")
	if got := conn.RoundTrips() - before; got != 1 {
		t.Errorf("got %d round trips, want 1", got)
	}
}
