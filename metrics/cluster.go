package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/exactly-one/tenure/cluster"
)

// Member is what the collector of a cluster reads. *cluster.Member is one. The
// methods must be safe for concurrent use, and not block.
type Member interface {
	ID() cluster.NodeID        // of this process's node
	Nodes() []cluster.NodeInfo // as this process knows them, the dead among them
}

var _ Member = (*cluster.Member)(nil)

// Cluster collects how many nodes there are, in which status, and how busy they
// are, under PREFIX_cluster_, and the same of this process's node under
// PREFIX_node_.
//
// Every node of a cluster tells the same of the cluster, up to how fresh its
// view is: take the maximum over the nodes, not the sum.
type Cluster struct {
	member                  Member
	clusterNames, nodeNames families

	nodes, load, meanLoad, highestLoad, connections, jobs, inFlight          family
	info, status, ownLoad, cpu, memory, ownConnections, ownJobs, ownInFlight family
}

var _ prometheus.Collector = (*Cluster)(nil)

// NewCluster returns a collector for a cluster and this process's node in it.
func NewCluster(member Member, config Config) *Cluster {
	config = config.withDefaults()
	all, own := newFamilies(config, "cluster"), newFamilies(config, "node")
	c := &Cluster{
		member: member,

		nodes:       all.gauge("nodes", "Nodes by status.", "status"),
		load:        all.gauge("load", "The sum of the loads of the active nodes: what so many wholly busy nodes do."),
		meanLoad:    all.gauge("mean_load", "The mean load of the active nodes, from 0 to 1."),
		highestLoad: all.gauge("highest_load", "The load of the busiest active node, from 0 to 1."),
		connections: all.gauge("connections", "Open connections of clients on all living nodes."),
		jobs:        all.gauge("jobs", "Jobs in progress on all living nodes."),
		inFlight:    all.gauge("in_flight", "Pieces of work in flight on all living nodes."),

		info:           own.gauge("info", "1, with what the node is.", "id", "name", "hostname", "version"),
		status:         own.gauge("status", "1 for the status that the node is in.", "status"),
		ownLoad:        own.gauge("load", "How busy the node is, from 0 to 1: the mean of processors and memory."),
		cpu:            own.gauge("cpu_usage_ratio", "How much of its processors the node uses, from 0 to 1."),
		memory:         own.gauge("memory_usage_ratio", "How much of its memory the node uses, from 0 to 1."),
		ownConnections: own.gauge("connections", "Open connections of clients on the node."),
		ownJobs:        own.gauge("jobs", "Jobs in progress on the node."),
		ownInFlight:    own.gauge("in_flight", "Pieces of work on the node that a drain would wait for."),
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
	nodes := c.member.Nodes()
	c.collectCluster(to, nodes)
	id := c.member.ID()
	if i := slices.IndexFunc(nodes, func(n cluster.NodeInfo) bool { return n.ID == id }); i >= 0 {
		c.collectNode(to, nodes[i])
	}
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
