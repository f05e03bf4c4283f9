package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/server/dashboard"
)

// The longest names that are allowed, in bytes.
const (
	longestName = 255 // of a role, a node, a schedule, a processor, and a value that describes a node
	longestUser = 200
)

// longName returns a name of a length. A browser finds no place in it to break a line.
func longName(name string, length int) string {
	name += "_"
	return strings.Repeat(name, length/len(name)+1)[:length]
}

// The names in the broken cluster. Some are as long as the names of pods, and some as allowed.
var (
	longNode      = longName("worker_of_settlements", longestName)
	deadNode      = longName("crashed_worker", longestName)
	silentNode    = longName("silent_worker", longestName)
	longRole      = longName("settlement_of_invoices", longestName)
	vacantRole    = longName("role_without_candidates", longestName)
	silentRole    = longName("role_of_silence", longestName)
	longSchedule  = longName("nightly_report", longestName)
	longProcessor = longName("webhooks", longestName)
	deadProcessor = longName("dead_letters", longestName)
	longUser      = longName("anna", longestUser)
	longError     = "the receiver answered 500: " + strings.Repeat("connection refused by 10.20.30.40, ", 12) + longName("x", 120)
	longTitle     = "Settlement of invoices in the region eu-west-1 (production)"
)

// brokenCluster is an installation in which everything is broken, with a dashboard and what it needs to
// lose its database.
type brokenCluster struct {
	*world
	wire *faultwire.Proxy // of the dashboard
}

// newBrokenCluster starts the nodes of a cluster and breaks them: two have crashed, a role has no
// leader, processors and schedules fail, and alerts fire.
func newBrokenCluster(t *testing.T) *brokenCluster {
	t.Helper()
	known, err := dashboard.Tokens(map[string]string{longUser: token}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var links []dashboard.Link
	for _, on := range []string{"role", "node", "alert"} {
		for _, name := range []string{"Logs", longName("traces", 40)} {
			links = append(links, dashboard.Link{On: on, Name: name, Template: "https://" + on + ".example.com/?q={" + on + "}"})
		}
	}
	b := &brokenCluster{}
	b.world = newWorld(t, dashboard.Config{
		Title: longTitle, Links: links, Alerts: brokenAlerts, Authentication: dashboard.Authentication{Token: known},
		HandleAlert: func(context.Context, dashboard.AlertRequest) error { return nil },
	}, func(w *world) {
		b.wire, w.backend = w.wired()
	})
	nodes := b.startNodes()
	b.failProcessors(nodes[0])
	b.failSchedules(nodes[1])
	b.crashNodes(nodes)
	b.act(nodes[0])
	b.samples(nodes[:2]...)
	return b
}

// startNodes starts nodes that lead many roles.
func (b *brokenCluster) startNodes() (nodes []*tenure.Node) {
	b.Helper()
	names := []string{longNode, "settlement-api-7c9d8b6f5d-x2k4q"}
	for i := range 12 {
		names = append(names, fmt.Sprintf("api-%d", i+1))
	}
	for i, name := range names {
		description := tenure.Description{Version: "1.8.2", Labels: map[string]string{"zone": "b"}}
		if i == 0 {
			long := longName("value", longestName)
			description = tenure.Description{Address: longName("host", longestName), Version: long, Roles: []string{long, "worker"}, Labels: map[string]string{"zone": long}}
		}
		nodes = append(nodes, b.node(b.Installation.Backend, name, tenure.Config{
			Description: description, Load: func() tenure.Load { return tenure.Load{CPU: 97, Memory: 88, Connections: 12345, InFlight: 123456} },
		}))
	}
	b.campaign(nodes[0], longRole)
	b.leads(nodes[0], longRole)
	for i := range 36 {
		node := nodes[i%len(nodes)]
		b.campaign(node, fmt.Sprintf("tenant-%02d", i+1))
	}
	return nodes
}

// crashNodes has two nodes crash. One leads roles that others take over, and one that no node takes over.
func (b *brokenCluster) crashNodes(others []*tenure.Node) {
	b.Helper()
	for _, name := range []string{deadNode, "settlement-api-7c9d8b6f5d-dead1"} {
		wire, backend := b.wired()
		killed := b.node(backend, name, tenure.Config{})
		roles := []string{vacantRole}
		for i := range 8 {
			roles = append(roles, longName(fmt.Sprintf("partition_%d_of_%.5s", i+1, name), longestName-i))
		}
		if name != deadNode {
			roles = roles[1:]
		}
		b.campaign(killed, roles...)
		for _, role := range roles {
			b.leads(killed, role)
		}
		for i, role := range roles {
			if role != vacantRole {
				b.campaign(others[i%2], role)
			}
		}
		b.AwaitWatched(killed.ID())
		if err := wire.Close(); err != nil {
			b.Fatal(err)
		}
		for _, role := range roles {
			b.Await("the role "+role+" has lost its leader", func() bool {
				leaders, err := b.Installation.Backend.Leaders(b.Context(), role)
				return err == nil && (role == vacantRole) == (len(leaders) == 0) && !slices.ContainsFunc(leaders, func(l tenure.Leader) bool { return l.NodeID == killed.ID() })
			})
		}
	}
}

// brokenAlerts are alerts in each state, with long texts.
func brokenAlerts(ctx context.Context) ([]dashboard.Alert, error) {
	alerts, err := handledAlerts(ctx)
	since := time.Now().Add(-26 * time.Hour)
	return append(alerts, dashboard.Alert{
		Name: longName("no_leader_of_settlements", longestName), State: "firing", Severity: "critical", Summary: longError, Since: since, Description: longError + "!",
		Labels:  map[string]string{"role": longRole, "severity": "critical"},
		Runbook: "runbook " + longName("page", longestName), Incident: longError, AcknowledgedBy: longUser, AcknowledgedUntil: since.Add(96 * time.Hour),
		SilencedBy: longUser, SilencedUntil: since.Add(96 * time.Hour),
	}), err
}

// act does what operators do, so that the page Audit has rows, and the role and its node a past.
func (b *brokenCluster) act(node *tenure.Node) {
	b.Helper()
	for range 4 {
		leaders, err := b.Installation.Backend.Leaders(b.Context(), longRole)
		if err != nil || len(leaders) != 1 {
			b.Fatalf("the leaders are %v, %v", leaders, err)
		}
		b.request(tenure.Request{Kind: tenure.RequestStepDown, Role: longRole, Term: leaders[0].Term, By: longUser})
		b.Await("the role has another term", func() bool {
			next, err := b.Installation.Backend.Leaders(b.Context(), longRole)
			return err == nil && len(next) == 1 && next[0].Term > leaders[0].Term
		})
	}
	for _, one := range []struct {
		kind   tenure.RequestKind
		status tenure.NodeStatus
	}{{tenure.RequestDrain, tenure.StatusDraining}, {tenure.RequestUndrain, tenure.StatusActive}} {
		b.request(tenure.Request{Kind: one.kind, Node: node.ID(), By: longUser})
		b.Await("the node is "+string(one.status), func() bool { return b.member(longNode).Status == one.status })
	}
	b.leads(node, longRole)
}

func (b *brokenCluster) request(r tenure.Request) {
	b.Helper()
	if err := b.Installation.Backend.Request(b.Context(), r); err != nil {
		b.Fatal(err)
	}
}

// silence stops the heartbeats of a leader. Before its lease ends, the dashboard loses its database, so
// that the leader stays silent on the pages.
func (b *brokenCluster) silence(p *page) {
	b.Helper()
	wire, backend := b.wired()
	node := b.node(backend, silentNode, tenure.Config{Lease: 20 * time.Second})
	b.campaign(node, silentRole)
	b.leads(node, silentRole)
	b.Cleanup(func() { wire.Resume() }) // so that the node can close
	p.visit("#/nodes?search=silent")
	p.shows(silentNode)
	wire.Stall()
	p.await("the node is silent", row(silentNode)+`?.match(/\bsilent\b/)`)
	b.wire.Stall()
	b.Cleanup(func() { b.wire.Resume() })
	p.await("the database is down", `document.getElementById("connection").innerText.match(/Database down/)`)
}
