package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bucket counts the rounds that took longer than the bucket before it ends, and at most
// UpTo milliseconds.
type bucket struct {
	UpTo   float64 `json:"up_to_ms"`
	Rounds int     `json:"rounds"`
	Bare   int     `json:"bare"` // rounds of the bare waiter
}

// bucketBounds are about logarithmic: six in each decade from 0.1 ms to 70 s.
var bucketBounds = func() (all []time.Duration) {
	for decade := 100 * time.Microsecond; decade <= 10*time.Second; decade *= 10 {
		for _, tenths := range []time.Duration{10, 15, 20, 30, 50, 70} {
			all = append(all, decade*tenths/10)
		}
	}
	return all
}()

// histogram counts durations, from the first bucket that has some to the last. The last
// bound also counts what is longer.
func histogram(took, bare []time.Duration) []bucket {
	all := make([]bucket, len(bucketBounds))
	first, last := len(all), -1
	count := func(d time.Duration) *bucket {
		i, _ := slices.BinarySearch(bucketBounds, d)
		i = min(i, len(all)-1)
		first, last = min(first, i), max(last, i)
		return &all[i]
	}
	for i, bound := range bucketBounds {
		all[i].UpTo = inMilliseconds(bound)
	}
	for _, d := range took {
		count(d).Rounds++
	}
	for _, d := range bare {
		count(d).Bare++
	}
	if last < 0 {
		return nil
	}
	return all[first : last+1]
}

// drawn is the histogram as text, a line for each bucket.
func drawn(all []bucket) string {
	const width = 40
	most, bare := 1, false
	for _, b := range all {
		most, bare = max(most, b.Rounds), bare || b.Bare > 0
	}
	column := func(text string) string {
		if !bare {
			return ""
		}
		return fmt.Sprintf(" %7s", text)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "  %9s %7s%s\n", "up to ms", "rounds", column("bare"))
	for _, b := range all {
		bar := strings.Repeat("#", int(math.Ceil(float64(b.Rounds*width)/float64(most))))
		line := fmt.Sprintf("  %9.5g %7d%s  %s", b.UpTo, b.Rounds, column(strconv.Itoa(b.Bare)), bar)
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}

// percentile is the nearest rank; 0 without durations.
func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}

// inMilliseconds rounds to microseconds.
func inMilliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)/time.Microsecond) / 1000
}
