package metrics

import (
	"testing"
	"time"
)

// Whatever its samples are like, a day of a node takes about as much room.
func TestKeeping(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)
	for size, want := range map[int][2]int{ // samples that are kept for long, and the longest
		1: {24 * 60, 288}, stepSize: {24 * 60, 288}, stepSize + 1: {12 * 60, 144}, 8 * stepSize: {24 * 60 / 8, 36}, maxSample: {6, 2},
	} {
		var k keeping
		var sparse, lasting, first int
		for at := began; at.Before(began.Add(24 * time.Hour)); at = at.Add(10 * time.Second) {
			var d decision
			d, k = k.next(at, size)
			if d.keep >= keepSparse {
				sparse++
			}
			if d.lasting {
				lasting++
			}
			if d.first {
				first++
			}
			if d.lasting != (d.keep == keepUnfolded) || d.keep < keepEach || d.first && !d.lasting {
				t.Fatalf("%d bytes at %v: %+v", size, at, d)
			}
		}
		if sparse < want[0] || sparse > want[0]*3/2+1 || lasting < want[1] || lasting > want[1]*3/2+1 || first != 1 {
			t.Errorf("%d bytes: %d of a day are kept, %d for long, %d are the first; want about %d", size, sparse, lasting, first, want)
		}
	}
}
