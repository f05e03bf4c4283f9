package series

import (
	"cmp"
	"container/list"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/metrics"
)

// The labels for the measuring node.
const (
	nodeLabel     = "node"
	nodeNameLabel = "node_name"
)

// Config configures a store. The zero value is ready to use.
type Config struct {
	// Prefix begins the names of the nodes' metrics. Default "tenure".
	Prefix string
	// MaxSeries bounds the number of series. For a new series beyond it, an ended one
	// makes room, the longest ended first. If none has ended, the new one is left out.
	// Default 50,000.
	MaxSeries int
}

const defaultMaxSeries = 50_000

// staleAfter is how long a node may be silent before its last samples no longer count:
// the time of three samples and a little.
const staleAfter = 35 * time.Second

// Store keeps series. It is safe for concurrent use.
type Store struct {
	prefixes prefixes
	max      int

	mu             sync.RWMutex
	series         map[string]*series   // by their labels
	named          map[string][]*series // by their names in the store
	nodes          map[uuid.UUID]*node
	departed       map[string]*departed // sums of gone nodes' counters, by their labels
	ended          *list.List           // of *series: ended ones, the longest ended first
	round          uint64               // counts rounds
	replaced       map[uuid.UUID]bool   // replaced dead nodes
	left           int                  // how many series were left out in this round
	silenceCheckAt int64                // when makeRoomLocked may check for silent nodes again
}

// series is one series.
type series struct {
	timeline
	labels   labels.Labels
	kind     metrics.SeriesType
	seenIn   uint64  // the snapshot of its node that had it last
	setIn    uint64  // the round in which the store itself had it last; 0 for never
	departed float64 // its part of the sum of gone nodes' counters

	// Its places in the store's indexes: removing it needs no search.
	key     string
	inNamed int
	node    *node // the node that measures it; nil if the store itself does
	inNode  int
	inEnded *list.Element // nil unless it has ended
}

// node is who measured series.
type node struct {
	name     string
	at       time.Time // of the last snapshot
	snapshot uint64    // counts them
	series   []*series
	silent   bool
	evicted  map[uint64]float64 // departed values of its evicted series, by the hashes of their labels
}

// New makes an empty store.
func New(config Config) *Store {
	config.MaxSeries = cmp.Or(config.MaxSeries, defaultMaxSeries)
	s := &Store{prefixes: newPrefixes(config.Prefix), max: config.MaxSeries}
	s.Clear()
	return s
}

// Clear forgets everything.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.series, s.named, s.nodes = map[string]*series{}, map[string][]*series{}, map[uuid.UUID]*node{}
	s.departed, s.ended, s.left, s.silenceCheckAt = map[string]*departed{}, list.New(), 0, 0
}

// Append takes the measurements of a node. A series missing in the snapshot ends there. A
// snapshot not later than the node's last is left out.
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
		if !named(measured) {
			continue
		}
		builder.Reset()
		builder.Add(model.MetricNameLabel, s.prefixes.canonical(measured.Name))
		for name, value := range measured.Labels {
			if name == nodeLabel || name == nodeNameLabel {
				name = "exported_" + name // as Prometheus does with its own labels
			}
			if value != "" {
				builder.Add(name, printable.Text(value))
			}
		}
		builder.Add(nodeLabel, id)
		builder.Add(nodeNameLabel, printable.Label(n.name))
		builder.Sort()
		one := s.findLocked(builder.Labels(), measured.Type, at)
		if one == nil {
			continue
		}
		if one.node == nil {
			one.node, one.inNode = n, len(n.series)
			n.series = append(n.series, one)
			s.recallLocked(one)
		}
		one.seenIn = n.snapshot
		s.comeBackLocked(one)
		s.appendLocked(one, sample{at, measured.Value})
	}
	for _, one := range n.series {
		if one.seenIn != n.snapshot {
			s.endLocked(one, at)
		}
	}
}

// named reports whether Prometheus takes the names of a series in every format. A user
// with the privilege to write samples can write other names.
func named(measured metrics.Series) bool {
	for name := range measured.Labels {
		if !model.LegacyValidation.IsValidLabelName(name) {
			return false
		}
	}
	return model.LegacyValidation.IsValidMetricName(measured.Name)
}

// findLocked returns the series with these labels, or nil if there are too many at a
// time.
func (s *Store) findLocked(l labels.Labels, kind metrics.SeriesType, at int64) *series {
	var buffer [512]byte
	key := l.Bytes(buffer[:0])
	if known := s.series[string(key)]; known != nil {
		return known
	}
	if len(s.series) >= s.max && !s.makeRoomLocked(at) {
		s.left++
		return nil
	}
	name := l.Get(model.MetricNameLabel)
	found := &series{labels: l.Copy(), kind: kind, key: string(key), inNamed: len(s.named[name])}
	s.series[found.key] = found
	s.named[name] = append(s.named[name], found)
	return found
}

// staleNaN marks the end of a series, as in Prometheus.
var staleNaN = math.Float64frombits(value.StaleNaN)

// appendLocked gives a series a value.
func (s *Store) appendLocked(one *series, v sample) {
	one.append(v)
	if one.inEnded != nil && !one.over() {
		s.ended.Remove(one.inEnded)
		one.inEnded = nil
	}
}

// endLocked marks a series as ended.
func (s *Store) endLocked(one *series, at int64) {
	if !one.over() {
		one.append(sample{max(at, one.last.at+1), staleNaN})
	}
	if one.inEnded == nil {
		one.inEnded = s.ended.PushBack(one)
	}
}

func (s *series) over() bool { return s.last.at == 0 || value.IsStaleNaN(s.last.value) }
