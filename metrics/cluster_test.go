package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/internal/testkit"
	"github.com/exactly-one/tenure/metrics"
)

// fixed is a member whose cluster never changes.
type fixed struct {
	id    cluster.NodeID
	nodes []cluster.NodeInfo
}

func (f *fixed) ID() cluster.NodeID        { return f.id }
func (f *fixed) Nodes() []cluster.NodeInfo { return f.nodes }

func newFixed() *fixed {
	own := cluster.NewNodeID()
	return &fixed{own, []cluster.NodeInfo{
		{ID: cluster.NewNodeID(), Status: cluster.Active, CPUUsage: 100, MemoryUsage: 60, CurrentConnections: 5, CurrentJobs: 2, InFlight: 1},
		{
			ID: own, Name: "api-1", Hostname: "host-1", Version: "1.2.3", Status: cluster.Active,
			CPUUsage: 30, MemoryUsage: 10, CurrentConnections: 7, CurrentJobs: 3, InFlight: 4,
		},
		{ID: cluster.NewNodeID(), Status: cluster.Draining, CPUUsage: 100, MemoryUsage: 100, CurrentConnections: 1, CurrentJobs: 1, InFlight: 1},
		{ID: cluster.NewNodeID(), Status: cluster.Dead, CPUUsage: 100, MemoryUsage: 100, CurrentConnections: 100, CurrentJobs: 100, InFlight: 100},
	}}
}

func TestClusterCollectsNodes(t *testing.T) {
	member := newFixed()
	got := scrape(t, metrics.NewCluster(member, metrics.Config{}))
	got.want(t, 0, "tenure_cluster_nodes", "status", "joining")
	got.want(t, 2, "tenure_cluster_nodes", "status", "active")
	got.want(t, 1, "tenure_cluster_nodes", "status", "draining")
	got.want(t, 1, "tenure_cluster_nodes", "status", "dead")
	got.want(t, 1, "tenure_cluster_load")
	got.want(t, 0.5, "tenure_cluster_mean_load")
	got.want(t, 0.8, "tenure_cluster_highest_load")
	got.want(t, 13, "tenure_cluster_connections")
	got.want(t, 6, "tenure_cluster_jobs")
	got.want(t, 6, "tenure_cluster_in_flight")

	got.want(t, 1, "tenure_node_info", "id", member.id.String(), "name", "api-1", "hostname", "host-1", "version", "1.2.3")
	got.want(t, 1, "tenure_node_status", "status", "active")
	got.want(t, 0.2, "tenure_node_load")
	got.want(t, 0.3, "tenure_node_cpu_usage_ratio")
	got.want(t, 0.1, "tenure_node_memory_usage_ratio")
	got.want(t, 7, "tenure_node_connections")
	got.want(t, 3, "tenure_node_jobs")
	got.want(t, 4, "tenure_node_in_flight")
}

func TestClusterIsEmptyBeforeFirstRead(t *testing.T) {
	got := scrape(t, metrics.NewCluster(&fixed{id: cluster.NewNodeID()}, metrics.Config{}))
	got.want(t, 0, "tenure_cluster_nodes", "status", "active")
	got.want(t, 0, "tenure_cluster_mean_load")
	if _, found := got.series("tenure_node_load"); found {
		t.Error("a node that is not in the registry has a load")
	}
}

// rereading is a member whose nodes have old loads until its registry is read.
type rereading struct {
	*fixed
	recent []cluster.NodeInfo
	err    error
	age    time.Duration // requested last
}

func (r *rereading) RecentNodes(ctx context.Context, age time.Duration) ([]cluster.NodeInfo, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("the read is not bounded")
	}
	if r.age = age; r.err != nil {
		return r.nodes, r.err
	}
	return r.recent, nil
}

func TestScrapeReadsRecentLoads(t *testing.T) {
	member := &rereading{fixed: newFixed()}
	member.recent = slices.Clone(member.nodes)
	member.recent[0].CurrentJobs = 50
	collector := metrics.NewCluster(member, metrics.Config{})
	scrape(t, collector).want(t, 54, "tenure_cluster_jobs")
	if member.age != 5*time.Second {
		t.Errorf("the loads may be %v old; want 5s", member.age)
	}
	member.err = tenure.ErrSessionLost
	scrape(t, collector).want(t, 6, "tenure_cluster_jobs")
}

// The number of series of a scrape does not depend on the number of nodes.
func TestSeriesDoNotGrowWithNodes(t *testing.T) {
	member := newFixed()
	few := testutil.CollectAndCount(metrics.NewCluster(member, metrics.Config{}))
	for range 200 {
		member.nodes = append(member.nodes, cluster.NodeInfo{ID: cluster.NewNodeID(), Status: cluster.Active})
	}
	if many := testutil.CollectAndCount(metrics.NewCluster(member, metrics.Config{})); many != few {
		t.Errorf("%d series of 4 nodes, %d of 204", few, many)
	}
}

func TestClusterFollowsNamingConventions(t *testing.T) {
	for _, prefix := range []string{"tenure", "forge"} {
		lint(t, metrics.NewCluster(newFixed(), metrics.Config{Prefix: prefix}))
	}
}

// On a real server, a scrape of either node shows what the heartbeats of both
// nodes report.
func TestClusterReportsLoadsOnPostgres(t *testing.T) {
	pgtest.Long(t)
	i := postgrestest.Unmigrated(t)
	join := func(name string, jobs int) *cluster.Member {
		return postgrestest.Join(t, i.NewBackend(), tenure.Config{
			Name: name, Logger: slog.New(slog.DiscardHandler), Load: func() tenure.Load { return tenure.Load{Jobs: jobs} },
		}, cluster.Config{})
	}
	first, second := join("first", 3), join("second", 4)
	for _, member := range []*cluster.Member{first, second} {
		awaitJobs(t, member, 7)
		got := scrape(t, metrics.NewCluster(member, metrics.Config{}))
		got.want(t, 2, "tenure_cluster_nodes", "status", "active")
		got.want(t, 1, "tenure_node_status", "status", "active")
	}
}

// awaitJobs waits until a member's scrapes show so many jobs in its cluster.
func awaitJobs(t *testing.T, member *cluster.Member, jobs float64) {
	t.Helper()
	collector := metrics.NewCluster(member, metrics.Config{})
	testkit.AwaitNil(t, time.Minute, func() error {
		if got, _ := scrape(t, collector).series("tenure_cluster_jobs"); got != jobs {
			return fmt.Errorf("%s knows of %v jobs, of %v", member.Node().Name(), got, jobs)
		}
		return nil
	})
}
