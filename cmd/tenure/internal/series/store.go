package series

import (
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/exactly-one/tenure/metrics"
)

// The labels that say who measured a series.
const (
	nodeLabel     = "node"
	nodeNameLabel = "node_name"
)

// Config configures a store. The zero value is ready to use.
type Config struct {
	// Prefix begins the names of the nodes' metrics. Default "tenure".
	Prefix string
	// MaxSeries is how many series are kept; those that come beyond are left
	// out. Default 50,000.
	MaxSeries int
}

const defaultMaxSeries = 50_000

// staleAfter is for how long a node may be silent before what it said last counts
// no more: the time of three samples and a little.
const staleAfter = 35 * time.Second

// Store keeps series. It is safe for concurrent use.
type Store struct {
	prefixes prefixes
	max      int

	mu       sync.RWMutex
	series   map[string]*series   // by their labels
	named    map[string][]*series // by the names under which they are kept
	nodes    map[uuid.UUID]*node
	departed map[string]*departed // what counters of nodes that are gone amount to, by their labels
	round    uint64               // counts rounds
	left     int                  // how many series were left out in this round
}

// series is one series.
type series struct {
	timeline
	labels   labels.Labels
	kind     metrics.SeriesType
	seenIn   uint64  // the snapshot of its node that had it last
	setIn    uint64  // the round in which the store itself had it last; 0 for never
	departed float64 // what it is among those of nodes that are gone
}

// node is who measured series.
type node struct {
	name     string
	at       time.Time // of the last snapshot
	snapshot uint64    // counts them
	series   []*series
	silent   bool
}

// New makes an empty store.
func New(config Config) *Store {
	if config.MaxSeries == 0 {
		config.MaxSeries = defaultMaxSeries
	}
	return &Store{
		prefixes: newPrefixes(config.Prefix), max: config.MaxSeries,
		series: map[string]*series{}, named: map[string][]*series{}, nodes: map[uuid.UUID]*node{}, departed: map[string]*departed{},
	}
}

// Append takes what a node measured. What the node does not measure any more
// ends there. A snapshot that is not later than the node's last is left out.
func (s *Store) Append(snapshot metrics.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[snapshot.Node]
	if n == nil {
		n = &node{}
		s.nodes[snapshot.Node] = n
	}
	if !snapshot.At.After(n.at) {
		return // read again after an error
	}
	n.name, n.at, n.silent = snapshot.NodeName, snapshot.At, false
	n.snapshot++
	at, id := snapshot.At.UnixMilli(), snapshot.Node.String()
	builder := labels.NewScratchBuilder(8)
	for _, measured := range snapshot.Series {
		builder.Reset()
		builder.Add(model.MetricNameLabel, s.prefixes.canonical(measured.Name))
		for name, value := range measured.Labels {
			if name == nodeLabel || name == nodeNameLabel {
				name = "exported_" + name // as Prometheus does with labels of its own
			}
			if value != "" {
				builder.Add(name, value)
			}
		}
		builder.Add(nodeLabel, id)
		builder.Add(nodeNameLabel, n.name)
		builder.Sort()
		one, isNew := s.find(builder.Labels(), measured.Type)
		if one == nil {
			continue
		}
		if isNew || one.seenIn == 0 {
			n.series = append(n.series, one)
		}
		one.seenIn = n.snapshot
		s.comeBack(one)
		one.append(sample{at, measured.Value})
	}
	n.endUnseen(at)
}

// find returns the series with these labels, or nil if there are too many.
func (s *Store) find(l labels.Labels, kind metrics.SeriesType) (found *series, isNew bool) {
	var buffer [512]byte
	key := l.Bytes(buffer[:0])
	if known := s.series[string(key)]; known != nil {
		return known, false
	}
	if len(s.series) >= s.max {
		s.left++
		return nil, false
	}
	found = &series{labels: l.Copy(), kind: kind}
	s.series[string(key)] = found
	name := l.Get(model.MetricNameLabel)
	s.named[name] = append(s.named[name], found)
	return found, true
}

// endUnseen ends the series that the last snapshot did not have.
func (n *node) endUnseen(at int64) {
	for _, one := range n.series {
		if one.seenIn != n.snapshot {
			one.end(at)
		}
	}
}

// ended says that a series has no value any more, as Prometheus has it.
var ended = math.Float64frombits(value.StaleNaN)

// end marks a series as ended.
func (s *series) end(at int64) {
	if !s.over() {
		s.append(sample{max(at, s.last.at+1), ended})
	}
}

func (s *series) over() bool { return s.last.at == 0 || value.IsStaleNaN(s.last.value) }
