package dashboard

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure/metrics"
	"github.com/exactly-one/tenure/postgres"
)

// The bounds on the samples in memory: at most about 15 MB.
const (
	maxSampledNodes = 300
	sampledFor      = 24 * time.Hour
	leastStep       = 5 * time.Second // between two samples of a node

	sampleAge     = 5 * time.Second // for how long a read of the samples is used again
	sampleTimeout = 30 * time.Second
	// sampleSilence is how long no sample arrives until all are read again: a position
	// belongs to one server.
	sampleSilence = 2 * time.Minute
	// maxAhead is how far a sample may be in the future, as after a change of the clock.
	maxAhead = time.Minute
)

// figure is a number of a sample for the graphs.
type figure int

const (
	nodeCPU figure = iota
	nodeMemory
	nodeConnections
	nodeJobs
	nodeInFlight
	activeNodes
	drainingNodes
	deadNodes
	meanLoad
	highestLoad
	allConnections
	allJobs
	allInFlight
	figureCount
)

// figureNames are the metrics of the figures, without their prefix, with the label status.
var figureNames = map[[2]string]figure{
	{"_node_cpu_usage_ratio"}: nodeCPU, {"_node_memory_usage_ratio"}: nodeMemory, {"_node_connections"}: nodeConnections,
	{"_node_jobs"}: nodeJobs, {"_node_in_flight"}: nodeInFlight,
	{"_cluster_nodes", "active"}: activeNodes, {"_cluster_nodes", "draining"}: drainingNodes, {"_cluster_nodes", "dead"}: deadNodes,
	{"_cluster_mean_load"}: meanLoad, {"_cluster_highest_load"}: highestLoad,
	{"_cluster_connections"}: allConnections, {"_cluster_jobs"}: allJobs, {"_cluster_in_flight"}: allInFlight,
}

// sample has the figures of a node at a time; unknown ones are NaN.
type sample struct {
	at      time.Time
	size    int // of the stored sample
	figures [figureCount]float32
}

// sampledNode are the samples of a node, the oldest first.
type sampledNode struct {
	samples []sample
	pace    time.Duration // the shortest time between two of them
}

// samples are the stored samples of all nodes. Each sample is read once, when a page
// shows a graph; then only new ones are read. The shared reads of visitors use it one at
// a time.
type samples struct {
	backend  *postgres.Backend
	database postgres.Database
	prefix   string // of the metrics
	names    map[[2]string]figure

	position   metrics.Position
	nodes      map[uuid.UUID]*sampledNode
	newest     time.Time // zero if there is no sample
	unreadable bool      // there are samples of a newer release
	readAt     time.Time
	wholeAt    time.Time // when all were read
	forgotten  atomic.Bool
}

// newSamples returns nil without a database.
func newSamples(config Config) *samples {
	if config.Database == nil {
		return nil
	}
	s := &samples{backend: config.Backend, database: config.Database, prefix: cmp.Or(config.MetricsPrefix, "tenure"), names: map[[2]string]figure{}, nodes: map[uuid.UUID]*sampledNode{}}
	for name, f := range figureNames {
		s.names[[2]string{s.prefix + name[0], name[1]}] = f
	}
	return s
}

// forget makes the next read begin anew: the database was replaced by an older one.
func (s *samples) forget() {
	if s != nil {
		s.forgotten.Store(true)
	}
}

// refresh reads new samples, at most once in sampleAge.
func (s *samples) refresh(ctx context.Context, now time.Time) error {
	if !s.readAt.IsZero() && time.Since(s.readAt) < sampleAge {
		return nil
	}
	silent := now.Sub(s.newest) > sampleSilence && time.Since(s.wholeAt) > sampleSilence
	if s.forgotten.Swap(false) || silent {
		s.position, s.newest = "", time.Time{}
		clear(s.nodes)
	}
	if s.position == "" {
		s.wholeAt, s.unreadable = time.Now(), false
	}
	next, err := metrics.ReadSamples(ctx, s.backend, s.database, s.position, func(read metrics.Snapshot) error {
		s.take(read, now)
		return nil
	})
	if err != nil {
		return err
	}
	s.position, s.readAt = next, time.Now()
	s.thin(now)
	return nil
}

// take adds a sample, even one read before.
func (s *samples) take(read metrics.Snapshot, now time.Time) {
	if read.Problem != nil {
		s.unreadable = true
		return
	}
	if read.At.After(now.Add(maxAhead)) {
		return
	}
	node := s.nodes[read.Node]
	if node == nil {
		node = &sampledNode{}
		s.nodes[read.Node] = node
	}
	one := sample{at: read.At, size: read.Size}
	for i := range one.figures {
		one.figures[i] = float32(math.NaN())
	}
	for _, series := range read.Series {
		if f, ok := s.names[[2]string{series.Name, series.Labels["status"]}]; ok {
			one.figures[f] = float32(series.Value)
		}
	}
	i, found := slices.BinarySearchFunc(node.samples, read.At, func(s sample, at time.Time) int { return s.at.Compare(at) })
	if !found {
		node.samples = slices.Insert(node.samples, i, one)
	}
	if read.At.After(s.newest) {
		s.newest = read.At
	}
}

// thin keeps as many samples as are stored of their age, and the nodes of the latest
// ones.
func (s *samples) thin(now time.Time) {
	for id, node := range s.nodes {
		var last time.Time // the step of the sample before
		node.samples = slices.DeleteFunc(node.samples, func(one sample) bool {
			age := now.Sub(one.at)
			step := one.at.Truncate(max(metrics.KeptEvery(one.size, age), leastStep))
			again := step.Equal(last)
			last = step
			return age > sampledFor || again
		})
		if len(node.samples) == 0 {
			delete(s.nodes, id)
			continue
		}
		node.pace = math.MaxInt64
		for i, one := range node.samples[1:] {
			node.pace = min(node.pace, one.at.Sub(node.samples[i].at))
		}
	}
	if len(s.nodes) <= maxSampledNodes {
		return
	}
	ids := make([]uuid.UUID, 0, len(s.nodes))
	for id := range s.nodes {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return s.nodes[b].last().Compare(s.nodes[a].last()) })
	for _, id := range ids[maxSampledNodes:] {
		delete(s.nodes, id)
	}
}

// last is when the node sent its last sample.
func (n *sampledNode) last() time.Time { return n.samples[len(n.samples)-1].at }

// slowest bounds the usual time between two samples of a node.
const slowest = 10 * time.Minute

// expected is the usual time from a sample to the next one.
func (n *sampledNode) expected(one sample, now time.Time) time.Duration {
	return max(metrics.KeptEvery(one.size, now.Sub(one.at)), min(n.pace, slowest)*6/5, leastStep)
}

// continues reports whether no sample is missing between one and the next.
func (n *sampledNode) continues(i int, now time.Time) bool {
	return i+1 < len(n.samples) && n.samples[i+1].at.Sub(n.samples[i].at) <= n.expected(n.samples[i], now)*5/2
}

// at returns the valid sample at a time, if there is one.
func (n *sampledNode) at(t, now time.Time) (sample, bool) {
	i, found := slices.BinarySearchFunc(n.samples, t, func(s sample, at time.Time) int { return s.at.Compare(at) })
	if !found {
		i--
	}
	if i < 0 {
		return sample{}, false
	}
	one := n.samples[i]
	return one, n.continues(i, now) || t.Sub(one.at) <= n.expected(one, now)*3/2
}
