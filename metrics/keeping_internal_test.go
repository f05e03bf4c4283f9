package metrics

import (
	"maps"
	"testing"
	"time"
)

// Whatever its samples are like, a day of a node takes about the same space.
func TestKeepingBoundsSpace(t *testing.T) {
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
			if d.lasting != (d.keep == keepUnrolled) || d.keep < keepEach || d.first && !d.lasting {
				t.Fatalf("%d bytes at %v: %+v", size, at, d)
			}
		}
		if sparse < want[0] || sparse > want[0]*3/2+1 || lasting < want[1] || lasting > want[1]*3/2+1 || first != 1 {
			t.Errorf("%d bytes: %d of a day are kept, %d for long, %d are the first; want about %d", size, sparse, lasting, first, want)
		}
	}
}

// Samples of varying size are not kept more often.
func TestVaryingSizesAreKeptAsRarely(t *testing.T) {
	var k keeping
	sparse, lasting := 0, 0
	for i := range 360 { // an hour
		var d decision
		d, k = k.next(time.Date(2026, 1, 1, 0, 0, 10*i, 0, time.UTC), stepSize+i%2)
		if d.keep >= keepSparse {
			sparse++
		}
		if d.lasting {
			lasting++
		}
	}
	if sparse > 60 || lasting > 12 {
		t.Errorf("%d are kept, %d for long", sparse, lasting)
	}
}

// Samples are kept even if the clock is set back.
func TestClockSetBackKeepsSamples(t *testing.T) {
	at := time.Date(2026, 1, 2, 0, 0, 7, 0, time.UTC)
	_, k := keeping{}.next(at, 1)
	d, k := k.next(at.Add(-24*time.Hour), 1)
	if !d.lasting || d.first {
		t.Errorf("just after: %+v", d)
	}
	if d, _ := k.next(at.Add(-24*time.Hour+10*time.Second), 1); d.keep != keepEach {
		t.Errorf("in the same step: %+v", d)
	}
}

// Every sample is kept for 10 minutes, one per minute for 6 hours, and one per 5 minutes for
// a day and another one, in which it is rolled up. Of samples above 4 kB fewer are kept.
func TestSamplesAreKeptForTheDocumentedTimes(t *testing.T) {
	kept := map[time.Duration]int{}
	var k keeping
	for i := range 360 { // an hour
		var d decision
		d, k = k.next(time.Date(2026, 1, 1, 0, 0, 10*i, 0, time.UTC), 4<<10)
		kept[d.keep]++
	}
	if want := map[time.Duration]int{10 * time.Minute: 300, 6 * time.Hour: 48, 48 * time.Hour: 12}; !maps.Equal(kept, want) {
		t.Errorf("the samples of an hour are kept %v, want %v", kept, want)
	}
	for _, test := range []struct {
		size      int
		age, want time.Duration
	}{
		{1, 10*time.Minute - 1, 0}, {1, 10 * time.Minute, time.Minute}, {4 << 10, 6*time.Hour - 1, time.Minute},
		{4 << 10, 6 * time.Hour, 5 * time.Minute}, {4<<10 + 1, 10 * time.Minute, 2 * time.Minute}, {4<<10 + 1, 6 * time.Hour, 10 * time.Minute},
	} {
		if got := KeptEvery(test.size, test.age); got != test.want {
			t.Errorf("a sample of %d bytes is kept every %v at the age of %v, want %v", test.size, got, test.age, test.want)
		}
	}
}
