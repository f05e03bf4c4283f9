package metrics

import "time"

// Samples are kept at falling resolution: each for a while, one in each step for
// longer. The first one of a step is kept. Those of the last step are summed up by
// days when they are older than any reader asks for, see [RollUpSamples].
const (
	keepEach = 10 * time.Minute

	sparseStep = time.Minute
	keepSparse = 6 * time.Hour

	lastingStep = 5 * time.Minute
	keepLasting = 24 * time.Hour
	// keepUnfolded is for how long they wait to be summed up, where nobody does.
	keepUnfolded = 2 * keepLasting
)

// stepSize is how large samples may be for these steps. Larger ones are kept in
// longer steps, so that a day of a node takes as much room whatever it measures.
const stepSize = 4 << 10

// keeping is what is kept of one process's samples.
type keeping struct {
	begun           bool
	sparse, lasting time.Time // when the steps began that samples were kept of
}

// decision is what becomes of one sample.
type decision struct {
	keep    time.Duration
	lasting bool
	first   bool // of the process
}

// next decides on a sample of a size at a time, and returns what is to be
// remembered if it is written. A clock that was put back begins another step too.
func (k keeping) next(at time.Time, size int) (decision, keeping) {
	stretch := time.Duration(1 + max(0, size-1)/stepSize)
	d := decision{keep: keepEach, first: !k.begun}
	k.begun = true
	if step := at.Truncate(stretch * sparseStep); step.After(k.sparse) || k.sparse.After(at) {
		k.sparse, d.keep = step, keepSparse
	}
	if step := at.Truncate(stretch * lastingStep); step.After(k.lasting) || k.lasting.After(at) {
		k.lasting, d.keep, d.lasting = step, keepUnfolded, true
	}
	return d, k
}
