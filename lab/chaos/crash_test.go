//go:build linux

package main

import (
	"strings"
	"testing"
)

func TestCrashOfServerIsNoFault(t *testing.T) {
	const (
		killed = "LOG:  server process (PID 7) was terminated by signal 9: Killed\n"
		full   = "LOG:  checkpointer (PID 8) was terminated by signal 6: Aborted\n"
		segv   = "LOG:  server process (PID 9) was terminated by signal 11: Segmentation fault"
	)
	for log, want := range map[string]string{
		"":                                       "",
		killed + full:                            "",
		killed + segv:                            segv,
		killed + segv + "\n" + full:              segv,
		strings.Repeat("x", 1<<17) + "\n" + segv: segv,
	} {
		if got, err := crash(strings.NewReader(log)); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}
