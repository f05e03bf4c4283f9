package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure/internal/pgtest"
)

func TestLinesAreParsed(t *testing.T) {
	got, err := parseBesideLine([]byte(` {"t_mono_ns":12345,"leader":true,"term":7} `))
	if err != nil || got != (besideLine{12345, true}) {
		t.Errorf("got %v, %v, want 12345 and a leader", got, err)
	}
	for line, want := range map[string]string{
		"rubbish":                               "want lines such as",
		"":                                      "want lines such as",
		`{"t_mono_ns":1,"leader":true} more`:    "want lines such as",
		`{"t_mono_ns":1.5,"leader":true}`:       "want lines such as",
		`{"t_mono_ns":1,"leader":"yes"}`:        "want lines such as",
		`[1]`:                                   "want lines such as",
		`{"leader":true}`:                       "lacks a field",
		`{"t_mono_ns":1}`:                       "lacks a field",
		`{"t_mono_ns":-1,"leader":true}`:        "lacks a field",
		`null`:                                  "lacks a field",
		strings.Repeat("x", maxBesideLine-1):    "want lines such as",
		"{\"t_mono_ns\":1,\n\"leader\":\"true}": "want lines such as",
	} {
		if _, err := parseBesideLine([]byte(line)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("%.40q: got %v, want one short line with %q", line, err, want)
		}
	}
}

// lines feeds lines that were read when they were printed.
func lines(t *testing.T, l *leadership, all ...besideLine) {
	t.Helper()
	for _, line := range all {
		if err := l.add(line, line.at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeadershipFollowsItsLines(t *testing.T) {
	const s = time.Second
	l := &leadership{started: 10 * s}
	lines(t, l, besideLine{11 * s, false}, besideLine{12 * s, true}, besideLine{13 * s, true}, besideLine{14 * s, false}, besideLine{15 * s, true})
	if got := l.until(16 * s); len(got) != 2 || got[0] != (span{12 * s, 14 * s}) || got[1] != (span{15 * s, 16 * s}) {
		t.Errorf("got %v, want 12 to 14 s and 15 to 16 s", got)
	}
	for _, test := range []struct {
		line besideLine
		want string
	}{
		{besideLine{14 * s, true}, "before that of its last line"},
		{besideLine{18 * s, true}, "no reading of CLOCK_MONOTONIC"},
		{besideLine{8 * s, true}, "no reading of CLOCK_MONOTONIC"},
	} {
		if err := l.add(test.line, 16*s); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.line, err, test.want)
		}
	}
}

// A stopped process claims nothing: only what it prints after it was continued counts.
func TestStoppedCandidateClaimsNothing(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		last bool
		want []span
	}{
		"it no longer leads": {false, []span{{1 * s, 3 * s}}},
		"it still leads":     {true, []span{{1 * s, 3 * s}, {8 * s, 9 * s}}},
	} {
		l := &leadership{}
		lines(t, l, besideLine{1 * s, true})
		l.paused = 2 * s
		lines(t, l, besideLine{3 * s, true}) // the signal was on its way
		if got := l.until(7 * s); len(got) != 1 || got[0] != (span{1 * s, 3 * s}) {
			t.Errorf("%s: got %v while it was stopped, want 1 to 3 s", name, got)
		}
		l.resumed = 7 * s
		lines(t, l, besideLine{8 * s, test.last})
		got := l.until(9 * s)
		if len(got) != len(test.want) || got[0] != test.want[0] || got[len(got)-1] != test.want[len(got)-1] {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestLongestOverlapIsOfTwoCandidates(t *testing.T) {
	got := longestOverlap([][]span{{{0, 10}, {30, 40}}, {{9, 12}}, {{36, 39}, {39, 40}}})
	if got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}

func newSystem(t *testing.T, command string, limit time.Duration) *system {
	t.Helper()
	if !besideSupported {
		t.Skip("NOT TESTED: processes do not share a clock here")
	}
	s := &system{command: command, patience: limit}
	t.Cleanup(s.end)
	return s
}

func TestCommandsThatBreakTheProtocolEndTheRun(t *testing.T) {
	for name, test := range map[string]struct{ command, want string }{
		"prints nothing":    {"exec sleep 600", "printed no line"},
		"never leads":       {`read up rest < /proc/uptime; echo "{\"t_mono_ns\":$(echo $up | tr -d .)0000000,\"leader\":false}"; exec sleep 600`, "no candidate led"},
		"prints rubbish":    {"echo rubbish; exec sleep 600", `printed "rubbish"`},
		"another clock":     {`echo '{"t_mono_ns":1700000000000000000,"leader":true}'; exec sleep 600`, "no reading of CLOCK_MONOTONIC"},
		"long line":         {"head -c 10000 /dev/zero; exec sleep 600", "more than 4096 bytes"},
		"endless line":      {"exec cat /dev/zero", "more than 4096 bytes"},
		"endless lines":     {"exec yes", `printed "y"`},
		"exits early":       {"exit 3", "exit status 3"},
		"exits well":        {"exit 0", "exit status 0"},
		"not a command":     {"/no/such/program", "exit status 127"},
		"closes its output": {"exec >&-; exec sleep 600", "closed its output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := 60 * time.Second // every other fault is noticed before
			if strings.Contains(test.want, "printed no line") || strings.Contains(test.want, "no candidate led") {
				limit = 2 * time.Second
			}
			err := newSystem(t, test.command, limit).gather(t.Context())
			if err == nil || exitCode(err) != 2 || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q, and exit code 2", err, test.want)
			}
		})
	}
}

// A process that leaves the group keeps the output open.
func TestProcessThatLeavesTheGroupDelaysNothing(t *testing.T) {
	s := newSystem(t, "setsid sleep 20 2>&- & echo rubbish; exec sleep 600", time.Minute)
	begun := time.Now()
	if err := s.gather(t.Context()); err == nil {
		t.Error("got no error, want that rubbish is none of the protocol")
	}
	s.end()
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %v, want no wait for the process", took)
	}
}

func TestInterruptIsNoFaultOfTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newSystem(t, "exec sleep 600", time.Minute).gather(ctx); !errors.Is(err, context.Canceled) || exitCode(err) != 1 {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func newLockSystem(t *testing.T, limit time.Duration) *system {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newSystem(t, "exec '"+self+"' "+lockCandidate, limit)
	s.environment = []string{"DATABASE_URL=" + pgtest.Shared(t).DSN()}
	return s
}

func TestBareLockIsReplacedAfterItsEnd(t *testing.T) {
	s := newLockSystem(t, time.Minute)
	for _, fault := range []func(context.Context, *system) (time.Duration, error){killOther, endOther} {
		for range 2 {
			if err := s.gather(t.Context()); err != nil {
				t.Fatal(err)
			}
			took, err := fault(t.Context(), s)
			if err != nil || took <= 0 {
				t.Fatalf("got %v, %v, want a time", took, err)
			}
			if len(s.alive) != nodes-1 {
				t.Errorf("%d candidates are left, want %d", len(s.alive), nodes-1)
			}
		}
	}
	if len(s.all) != nodes+3 {
		t.Errorf("%d candidates were started, want one more after each fault but the last", len(s.all))
	}
}

// A bare lock is never released by a stopped process: its round fails, and so ends the rounds.
func TestBareLockIsNotReplacedWhileItIsStopped(t *testing.T) {
	s := newLockSystem(t, 10*time.Second)
	all := systems{s}
	if err := all.gather(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.patience = time.Second
	in := scenario{beside: pauseOther}
	for range 2 { // the second is left out
		if err := all.fault(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	result := all.results()[0]
	if !errors.Is(result.failed, errNotReplaced) || len(result.took) != 0 || len(s.alive) != 0 {
		t.Errorf("got %+v with %d candidates, want a failed round and none", result, len(s.alive))
	}
	if row := result.String(); !strings.Contains(row, "no other candidate led after the fault") {
		t.Errorf("got the row %q, want why it failed", row)
	}
}
