package series

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// iterator walks over samples in a private buffer, for one series after the other.
type iterator struct {
	chunkenc.Iterator
	buffer samples
}

// newIterator returns an iterator over the samples of fill; it uses the old one again if
// it can.
func newIterator(old chunkenc.Iterator, fill func(into []sample) []sample) chunkenc.Iterator {
	it, ok := old.(*iterator)
	if !ok {
		it = &iterator{}
		it.Iterator = storage.NewListSeriesIterator(&it.buffer)
	}
	it.buffer = fill(it.buffer[:0])
	if list, ok := it.Iterator.(interface{ Reset(storage.Samples) }); ok {
		list.Reset(&it.buffer)
	} else {
		it.Iterator = storage.NewListSeriesIterator(&it.buffer)
	}
	return it
}

// samples implements [storage.Samples].
type samples []sample

func (s *samples) Get(i int) chunks.Sample { return &(*s)[i] }
func (s *samples) Len() int                { return len(*s) }

// A sample is a plain number: histograms are kept as the series of their buckets.
var _ chunks.Sample = (*sample)(nil)

func (s *sample) T() int64                      { return s.at }
func (s *sample) F() float64                    { return s.value }
func (s *sample) ST() int64                     { return 0 } // not known
func (s *sample) H() *histogram.Histogram       { return nil }
func (s *sample) FH() *histogram.FloatHistogram { return nil }
func (s *sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s *sample) Copy() chunks.Sample           { c := *s; return &c }
