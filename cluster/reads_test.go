package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/statements"
	"github.com/exactly-one/tenure/postgres"
)

// sending counts the statements that a node sends. It can keep the node's watch from
// connecting.
type sending struct {
	statements.Counter

	mu        sync.Mutex
	unwatched bool
	refused   int // connections of the watch
}

func (s *sending) connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	if strings.HasSuffix(config.RuntimeParams["application_name"], " watch") && s.refuse() {
		return nil, errors.New("kept from connecting")
	}
	return s.Connect(ctx, config)
}

func (s *sending) refuse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwatched {
		s.refused++
	}
	return s.unwatched
}

func (s *sending) keepUnwatched(unwatched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatched = unwatched
}

func (s *sending) counts() (sent map[string]int, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Counts(), s.refused
}

// counted is a member whose statements are counted.
type counted struct {
	node
	*sending
}

// readRegistry is the name of the statement that reads the registry.
const readRegistry = "members"

// joinCounted makes members whose statements are counted, and waits until they know one
// another and read the registry no more.
func (s site) joinCounted(n int, config tenure.Config, watchPeriod time.Duration) []counted {
	s.t.Helper()
	members := make([]counted, n)
	var nodes []node
	for i := range members {
		sent := &sending{}
		store := &mortal{Mortal: &postgrestest.Mortal{Backend: s.NewBackend(func(c *postgres.Config) {
			c.Connect, c.WatchPeriod = sent.connect, watchPeriod
		})}}
		config.Name = fmt.Sprintf("%s %d", s.schema, i) // the server is shared
		members[i] = counted{node{postgrestest.Join(s.t, store, config, cluster.Config{}), s.t, store}, sent}
		nodes = append(nodes, members[i].node)
	}
	for _, m := range members {
		for _, other := range members {
			m.seesStatus(other.ID(), cluster.Active)
		}
	}
	if n > 1 {
		s.settle(nodes...)
	}
	return members
}

// rest lets nodes rest and returns what they sent in that time.
func rest(members []counted, period time.Duration) (sent map[string]int, total int) {
	before := map[int]map[string]int{}
	for i, m := range members {
		before[i], _ = m.counts()
	}
	<-time.After(period) // what is measured is a time without events
	sent = map[string]int{}
	for i, m := range members {
		after, _ := m.counts()
		for name, n := range statements.Since(before[i], after) {
			sent[name] += n
			total += n
		}
	}
	return sent, total
}

// At rest, a node sends at most 0.4 statements a second with the default times. Here
// all times are a quarter of them, which a busy machine does not miss.
func TestRestingNodesReadTheRegistrySeldom(t *testing.T) {
	pgtest.Long(t)
	const (
		scale  = 4
		period = 60 * time.Second / scale
		size   = 4
	)
	site := newSite(t)
	members := site.joinCounted(size, tenure.Config{Lease: 10 * time.Second / scale, CheckInterval: 5 * time.Second / scale}, 30*time.Second/scale)
	sent, total := rest(members, period)
	seconds := period.Seconds() * scale * size // of nodes with the default times
	t.Logf("%.2f statements a second and node, %.3f of them read the registry: %v", float64(total)/seconds, float64(sent[readRegistry])/seconds, sent)
	if most := 0.4*seconds + size; float64(total) > most { // one more, because the time is cut off
		t.Errorf("%d statements were sent; want at most %.0f", total, most)
	}
	if most := 2 * size; sent[readRegistry] > most { // twelve intervals, or three quarters of that
		t.Errorf("the registry was read %d times; want at most %d", sent[readRegistry], most)
	}
	if least := size / 2; sent[readRegistry] < least { // the last intervals can end after the test
		t.Errorf("the registry was read %d times in 12 check intervals; want each member to read it every 9 to 12", sent[readRegistry])
	}
}

// A candidate for roles that another node leads costs no more than a node without
// roles, whatever their number.
func TestRestingCandidatesSendNoAttempts(t *testing.T) {
	pgtest.Long(t)
	const (
		scale  = 4
		period = 60 * time.Second / scale
		size   = 3
	)
	site := newSite(t)
	members := site.joinCounted(size, tenure.Config{Lease: 10 * time.Second / scale, CheckInterval: 5 * time.Second / scale}, 30*time.Second/scale)
	site.campaignForAll(members, 2500, 5*time.Second/scale)
	sent, total := rest(members, period)
	seconds := period.Seconds() * scale * size // of nodes with the default times
	t.Logf("%.2f statements a second and node: %v", float64(total)/seconds, sent)
	if most := 0.4*seconds + size; float64(total) > most { // one more, because the time is cut off
		t.Errorf("%d statements were sent; want at most %.0f", total, most)
	}
	if sent["take"] > 3 {
		t.Errorf("%d attempts were sent; want none", sent["take"])
	}
}

// campaignForAll makes all members campaign for so many roles, and waits until the
// first leads them and the others have sent no attempt for two check intervals.
func (s site) campaignForAll(members []counted, roles int, interval time.Duration) {
	s.t.Helper()
	for i, m := range members {
		for n := range roles {
			e, err := m.Node().Election(tenure.NamedRole(fmt.Sprintf("role %d", n)))
			if err == nil {
				err = e.Start(context.Background())
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
		if i > 0 {
			continue
		}
		s.Await("the first member leads", func() bool {
			return postgrestest.Value[int](s.Installation, `SELECT count(*) FROM `+s.table("terms")+` WHERE ended_at IS NULL AND term > 0`) == roles
		})
	}
	s.Await("the candidates rest", func() bool {
		before := 0
		for _, m := range members {
			sent, _ := m.counts()
			before += sent["take"]
		}
		<-time.After(2 * interval) // a time without attempts
		for _, m := range members {
			sent, _ := m.counts()
			before -= sent["take"]
		}
		return before == 0
	})
}

// never is a check interval that does not pass in a test: nothing is polled.
const never = time.Hour

func TestChangesAreSeenWithoutPolling(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	members := site.joinCounted(4, tenure.Config{Lease: 4 * time.Second, CheckInterval: never}, 0)
	a, b, c, d := members[0], members[1], members[2], members[3]
	everySees := func(id cluster.NodeID, what string, is func(info cluster.NodeInfo, there bool) bool, by ...counted) {
		t.Helper()
		for _, m := range by {
			m.sees(id, what, is)
		}
	}

	err := b.Node().UpdateDescription(within(t), func(d *tenure.Description) { d.Labels = map[string]string{"zone": "x"} })
	if err != nil {
		t.Fatal(err)
	}
	everySees(b.ID(), "labeled", func(info cluster.NodeInfo, _ bool) bool { return info.Labels["zone"] == "x" }, a, c, d)

	if err := site.Backend.Request(within(t), tenure.Request{Kind: tenure.RequestDrain, Node: b.ID(), By: "an operator"}); err != nil {
		t.Fatal(err)
	}
	everySees(b.ID(), "drained", func(info cluster.NodeInfo, _ bool) bool { return info.Drained && info.StatusBy == "an operator" }, a, c, d)

	late := site.join("late", cluster.Config{}, func(c *tenure.Config) { c.CheckInterval = never })
	everySees(late.ID(), "active", func(info cluster.NodeInfo, _ bool) bool { return info.Status == cluster.Active }, a, b, c, d)

	site.settle(a.node, b.node, c.node, d.node, late)
	c.store.kill()
	everySees(c.ID(), "dead", func(info cluster.NodeInfo, _ bool) bool { return info.Status == cluster.Dead }, a, b, d)

	if err := site.Backend.Forget(within(t), c.ID()); err != nil {
		t.Fatal(err)
	}
	gone := func(_ cluster.NodeInfo, there bool) bool { return !there }
	everySees(c.ID(), "forgotten", gone, a, b, d)

	if err := late.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	everySees(late.ID(), "gone", gone, a, b, d)
}

// label changes a node's labels in the registry as if the notification had been lost.
func (s site) label(id cluster.NodeID, zone string) {
	s.t.Helper()
	s.exec(`UPDATE `+s.table("nodes")+` SET labels = jsonb_build_object('zone', $2::text) WHERE id = $1`, id, zone)
}

func (n node) seesZone(id cluster.NodeID, zone string) {
	n.t.Helper()
	n.sees(id, "in the zone "+zone, func(info cluster.NodeInfo, _ bool) bool { return info.Labels["zone"] == zone })
}

func TestRegistryIsReadAgainIfANotificationIsLost(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	members := site.joinCounted(2, tenure.Config{CheckInterval: 200 * time.Millisecond}, 0)
	site.label(members[1].ID(), "lost")
	members[0].seesZone(members[1].ID(), "lost")
}

// The watch learns of a changed membership although the notification is lost.
func TestWatchReportsAMoveWithoutNotification(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	members := site.joinCounted(2, tenure.Config{CheckInterval: never}, 0)
	a, b := members[0], members[1]
	site.label(b.ID(), "moved")
	site.Await("the change is seen", func() bool {
		site.exec(`SELECT nextval($1)`, site.table("membership"))
		for _, info := range a.Nodes() {
			if info.ID == b.ID() {
				return info.Labels["zone"] == "moved"
			}
		}
		return false
	})
}

func TestRegistryIsReadWhenTheWatchIsBack(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	members := site.joinCounted(2, tenure.Config{CheckInterval: never}, 0)
	a, b := members[0], members[1]
	a.keepUnwatched(true)
	site.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, "tenure "+a.Node().Name()+" watch")
	site.Await("the watch is down", func() bool {
		_, refused := a.counts()
		down := postgrestest.Value[bool](site.Installation, `SELECT NOT watching FROM `+site.table("nodes")+` WHERE id = $1`, a.ID())
		return refused > 2 && down
	})
	site.label(b.ID(), "later") // after the reports that the watch is down
	before, _ := a.counts()
	a.keepUnwatched(false)
	a.seesZone(b.ID(), "later")
	after, _ := a.counts()
	if n := after[readRegistry] - before[readRegistry]; n > 2 {
		t.Errorf("the registry was read %d times; want once", n)
	}
}

// BenchmarkNodesAtRest measures what nodes with the default times send for a minute,
// also while they campaign for roles that one of them leads.
func BenchmarkNodesAtRest(b *testing.B) {
	const period = time.Minute
	for _, scale := range []struct{ size, roles int }{{3, 0}, {10, 0}, {3, 1}, {10, 1}, {3, 5000}} {
		b.Run(fmt.Sprintf("nodes=%d/roles=%d", scale.size, scale.roles), func(b *testing.B) {
			size, site := scale.size, newSite(b)
			members := site.joinCounted(size, tenure.Config{}, 0)
			<-time.After(2 * time.Second) // the last joins have been handled
			if scale.roles > 0 {
				site.campaignForAll(members, scale.roles, 5*time.Second)
			}
			for b.Loop() {
				sent, total := rest(members, period)
				nodes := float64(size) * period.Seconds()
				b.ReportMetric(float64(total)/nodes, "statements/s/node")
				b.ReportMetric(float64(sent[readRegistry])/nodes, "reads/s/node")
				b.ReportMetric(float64(sent[readRegistry]*size)/period.Seconds(), "rows/s")
			}
		})
	}
}
