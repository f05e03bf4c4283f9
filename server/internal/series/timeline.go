package series

import (
	"math"
	"time"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// resolutions say how samples are kept, the finest first: one in each step, for
// as long.
var resolutions = [...]struct{ step, keep time.Duration }{
	{0, time.Hour}, // every sample
	{time.Minute, 6 * time.Hour},
	{5 * time.Minute, Retention},
}

// Retention is for how long anything is kept.
const Retention = 24 * time.Hour

// chunkSize is how many samples are compressed together, and dropped together.
const chunkSize = 60

// sample is a value at a time in milliseconds since 1970.
type sample struct {
	at    int64
	value float64
}

// timeline is the values of one series over time. It is not safe for concurrent
// use.
type timeline struct {
	last   sample // at is 0 if there is none
	tail   []sample
	levels [len(resolutions)][]chunk
}

// tailSize is how many of the last samples are at hand without decompressing: five
// minutes of them, as much as most conditions look at. At most twice as many are kept.
const tailSize = 32

// chunk is compressed samples, without gaps in between.
type chunk struct {
	first, last int64
	data        *chunkenc.XORChunk
	appender    chunkenc.Appender
}

// append adds a sample if it is later than the last. A coarse level keeps the last sample
// of each step, so it gets a sample only when the next step has begun; until then the
// finer levels have it.
func (t *timeline) append(s sample) {
	if s.at <= t.last.at {
		return
	}
	t.appendTo(0, s)
	for i := 1; i < len(resolutions); i++ {
		step := resolutions[i].step.Milliseconds()
		if t.last.at != 0 && s.at/step != t.last.at/step {
			t.appendTo(i, t.last)
		}
	}
	t.last = s
	if len(t.tail) == 2*tailSize {
		t.tail = t.tail[:copy(t.tail, t.tail[tailSize:])]
	}
	t.tail = append(t.tail, s)
}

func (t *timeline) appendTo(level int, s sample) {
	chunks := t.levels[level]
	if n := len(chunks); n == 0 || chunks[n-1].data.NumSamples() >= chunkSize {
		data := chunkenc.NewXORChunk()
		appender, err := data.Appender()
		if err != nil {
			panic(err) // only for an invalid chunk
		}
		if n > 0 {
			chunks[n-1].appender = nil
			chunks[n-1].data.Compact()
		}
		chunks = append(chunks, chunk{first: s.at, data: data, appender: appender})
	}
	current := &chunks[len(chunks)-1]
	current.appender.Append(0, s.at, s.value)
	current.last = s.at
	t.levels[level] = chunks
}

// drop forgets too old samples at a time.
func (t *timeline) drop(now int64) {
	for i, resolution := range resolutions {
		oldest := now - resolution.keep.Milliseconds()
		chunks := t.levels[i]
		gone := 0
		for gone < len(chunks) && chunks[gone].last < oldest {
			gone++
		}
		if gone > 0 {
			t.levels[i] = append([]chunk(nil), chunks[gone:]...) // the array would keep what is gone
		}
	}
}

// read appends the samples between two times, both included, to a buffer: each stretch of
// time from the finest level reaching back to it.
func (t *timeline) read(from, to int64, into []sample) []sample {
	if len(t.tail) > 0 && t.tail[0].at <= from {
		for _, s := range t.tail {
			if s.at >= from && s.at <= to {
				into = append(into, s)
			}
		}
		return into
	}
	var begins [len(resolutions)]int64 // where each level takes over
	finer := int64(math.MaxInt64)
	for i, chunks := range t.levels {
		if len(chunks) > 0 {
			finer = min(finer, chunks[0].first)
		}
		begins[i] = finer
	}
	var iterator chunkenc.Iterator
	for i := len(resolutions) - 1; i >= 0; i-- {
		until := to
		if i > 0 {
			until = min(to, begins[i-1]-1)
		}
		for _, c := range t.levels[i] {
			if c.last < from || c.first > until {
				continue
			}
			iterator = c.data.Iterator(iterator)
			into = appendBetween(into, iterator, from, until)
		}
	}
	return into
}

// appendBetween appends the samples of a chunk from one time up to another.
func appendBetween(into []sample, iterator chunkenc.Iterator, from, until int64) []sample {
	for iterator.Next() == chunkenc.ValFloat {
		if at, value := iterator.At(); at >= from && at <= until {
			into = append(into, sample{at, value})
		}
	}
	return into
}
