package main

import "testing"

func TestPageHasLineOfEachMeasuredFault(t *testing.T) {
	const old = pageHeader + "\n| `network-cut` | 14.1 | 1 | 1.0 ms | 1.0 ms | 1.0 ms | – | 0 ms | 2025-12-31 |\n| `sigkill` | 14.1 | 1 | 1.0 ms | 1.0 ms | 1.0 ms | – | 0 ms | 2025-12-31 |"
	const want = pageHeader + "\n| `network-cut` | 14.1 | 1 | 1.0 ms | 1.0 ms | 1.0 ms | – | 0 ms | 2025-12-31 |\n| `sigkill` | 15.18 | 2 | 4.0 ms | 20.0 ms | 20.0 ms | 3.0 ms | 0 ms | 2026-01-01 |"
	r := sampleRecord()
	if got := r.withLines(old); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
