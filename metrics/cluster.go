package metrics

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/cluster"
)

// Member is the source of a cluster's collector, usually a *cluster.Member. Its methods
// must be safe for concurrent use and must not block.
//
// If it also has the method RecentNodes of *cluster.Member, each scrape calls it instead
// of Nodes, because Nodes can have old loads.
type Member interface {
	ID() cluster.NodeID        // of this process's node
	Nodes() []cluster.NodeInfo // all known nodes, including dead ones
}

var _ Member = (*cluster.Member)(nil)

// Cluster collects the number of nodes by status and their load, under
// PREFIX_cluster_, and the status and load of this process's node, under
// PREFIX_node_.
//
// All nodes report the same cluster-wide values, apart from delays: aggregate
// them with max, not sum.
type Cluster struct {
	member                  Member
	clusterNames, nodeNames families

	nodes, load, meanLoad, highestLoad, connections, jobs, inFlight          family
	info, status, ownLoad, cpu, memory, ownConnections, ownJobs, ownInFlight family
}

var _ prometheus.Collector = (*Cluster)(nil)

// NewCluster returns a collector for a cluster and this process's node.
func NewCluster(member Member, config Config) *Cluster {
	config = config.withDefaults()
	all, own := newFamilies(config, "cluster"), newFamilies(config, "node")
	c := &Cluster{
		member: member,

		nodes:       all.gauge("nodes", "Nodes by status.", "status"),
		load:        all.gauge("load", "The sum of the loads of the active nodes, in fully loaded nodes."),
		meanLoad:    all.gauge("mean_load", "The mean load of the active nodes, from 0 to 1."),
		highestLoad: all.gauge("highest_load", "The load of the busiest active node, from 0 to 1."),
		connections: all.gauge("connections", "Open connections of clients on all live nodes."),
		jobs:        all.gauge("jobs", "Jobs in progress on all live nodes."),
		inFlight:    all.gauge("in_flight", "Units of work in flight on all live nodes."),

		info:           own.gauge("info", "1, with the identity of the node as labels.", "id", "name", "hostname", "version"),
		status:         own.gauge("status", "1 for the status that the node is in.", "status"),
		ownLoad:        own.gauge("load", "How busy the node is, from 0 to 1: the mean of processors and memory."),
		cpu:            own.gauge("cpu_usage_ratio", "How much of its processors the node uses, from 0 to 1."),
		memory:         own.gauge("memory_usage_ratio", "How much of its memory the node uses, from 0 to 1."),
		ownConnections: own.gauge("connections", "Open connections of clients on the node."),
		ownJobs:        own.gauge("jobs", "Jobs in progress on the node."),
		ownInFlight:    own.gauge("in_flight", "Units of work on the node that a drain would wait for."),
	}
	c.clusterNames, c.nodeNames = all, own
	return c
}

// Describe implements [prometheus.Collector].
func (c *Cluster) Describe(to chan<- *prometheus.Desc) {
	c.clusterNames.describe(to)
	c.nodeNames.describe(to)
}

// Collect implements [prometheus.Collector].
func (c *Cluster) Collect(to chan<- prometheus.Metric) {
	nodes := c.currentNodes()
	c.collectCluster(to, nodes)
	id := c.member.ID()
	if i := slices.IndexFunc(nodes, func(n cluster.NodeInfo) bool { return n.ID == id }); i >= 0 {
		c.collectNode(to, nodes[i])
	}
}

const (
	recentAge     = 5 * time.Second // of the loads in a scrape
	recentTimeout = time.Second     // afterwards a scrape has the loads of the last read
)

// currentNodes returns the nodes for a scrape.
func (c *Cluster) currentNodes() []cluster.NodeInfo {
	reader, ok := c.member.(interface {
		RecentNodes(ctx context.Context, age time.Duration) ([]cluster.NodeInfo, error)
	})
	if !ok {
		return c.member.Nodes()
	}
	ctx, cancel := context.WithTimeout(context.Background(), recentTimeout)
	defer cancel()
	nodes, _ := reader.RecentNodes(ctx, recentAge) // after an error, from the last read, as without a session
	return nodes
}

func (c *Cluster) collectCluster(to chan<- prometheus.Metric, nodes []cluster.NodeInfo) {
	byStatus := map[cluster.NodeStatus]int{}
	var load, highest float64
	var connections, jobs, inFlight int
	for _, n := range nodes {
		byStatus[n.Status]++
		if n.Status == cluster.Active {
			load += n.Load()
			highest = max(highest, n.Load())
		}
		if n.Status != cluster.Dead {
			connections += n.CurrentConnections
			jobs += n.CurrentJobs
			inFlight += n.InFlight
		}
	}
	for _, status := range statuses {
		c.nodes.send(to, float64(byStatus[status]), string(status))
	}
	c.load.send(to, load)
	c.meanLoad.send(to, load/float64(max(1, byStatus[cluster.Active])))
	c.highestLoad.send(to, highest)
	c.connections.send(to, float64(connections))
	c.jobs.send(to, float64(jobs))
	c.inFlight.send(to, float64(inFlight))
}

var statuses = []cluster.NodeStatus{cluster.Joining, cluster.Active, cluster.Draining, cluster.Dead}

func (c *Cluster) collectNode(to chan<- prometheus.Metric, n cluster.NodeInfo) {
	c.info.send(to, 1, n.ID.String(), n.Name, n.Hostname, n.Version)
	c.status.send(to, 1, string(n.Status))
	c.ownLoad.send(to, n.Load())
	c.cpu.send(to, n.CPUUsage/100)
	c.memory.send(to, n.MemoryUsage/100)
	c.ownConnections.send(to, float64(n.CurrentConnections))
	c.ownJobs.send(to, float64(n.CurrentJobs))
	c.ownInFlight.send(to, float64(n.InFlight))
}
