package metrics

import "time"

// Samples are kept at decreasing resolution: first all, then one per step, with
// longer steps over time. The first sample of a step is kept. Samples of the
// last step are rolled up into daily totals when they are older than any reader
// needs; see [RollUpSamples].
const (
	keepEach = 10 * time.Minute

	sparseStep = time.Minute
	keepSparse = 6 * time.Hour

	lastingStep = 5 * time.Minute
	keepLasting = 24 * time.Hour
	// keepUnrolled is how long they are kept if no node rolls them up.
	keepUnrolled = 2 * keepLasting
)

// SamplesKept is how long samples are kept before they are rolled up.
const SamplesKept = keepLasting

// stepSize is the size of samples up to which the normal steps apply. Larger samples are
// kept in longer steps: a day of a node takes about the same space.
const stepSize = 4 << 10

// keeping records the kept samples of one process.
type keeping struct {
	begun           bool
	sparse, lasting time.Time // start of the steps in which a sample was kept
}

// decision says how long to keep one sample.
type decision struct {
	keep    time.Duration
	lasting bool
	first   bool // of the process
}

// stretchOf is by how much the steps of samples of a size are longer.
func stretchOf(size int) time.Duration { return time.Duration(1 + max(0, size-1)/stepSize) }

// KeptEvery returns the time between stored samples of a size, in bytes, at an age; 0 if
// all samples of this age are stored.
func KeptEvery(size int, age time.Duration) time.Duration {
	switch {
	case age < keepEach:
		return 0
	case age < keepSparse:
		return stretchOf(size) * sparseStep
	default:
		return stretchOf(size) * lastingStep
	}
}

// next decides on a sample of a size at a time, and returns the state to use if it is
// written. After the clock was set back, new steps start too.
func (k keeping) next(at time.Time, size int) (decision, keeping) {
	stretch := stretchOf(size)
	d := decision{keep: keepEach, first: !k.begun}
	k.begun = true
	if step := at.Truncate(stretch * sparseStep); step.After(k.sparse) || k.sparse.After(at) {
		k.sparse, d.keep = step, keepSparse
	}
	if step := at.Truncate(stretch * lastingStep); step.After(k.lasting) || k.lasting.After(at) {
		k.lasting, d.keep, d.lasting = step, keepUnrolled, true
	}
	return d, k
}
