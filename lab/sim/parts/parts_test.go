package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStateContinuesFromItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sim.json")
	s, err := load(path, "a", 1, false)
	if err != nil || s.Schedules != 0 {
		t.Fatalf("without a file: %+v, %v; want a new state", s, err)
	}
	s.add(result{Schedules: 300, Terms: 900})
	s.add(result{Schedules: 200, Terms: 500, Violations: []violation{{Seed: 7, What: "two leaders"}}})
	if err := s.save(path); err != nil {
		t.Fatal(err)
	}
	s, err = load(path, "a", 1, false)
	if err != nil || s.Schedules != 500 || s.Terms != 1400 || len(s.Violations) != 1 {
		t.Errorf("got %+v, %v; want both parts", s, err)
	}
}

func TestStateBeginsAnewAfterChangeOfCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sim.json")
	if err := (state{Tree: "a", Versions: 1, FirstSeed: 1, Schedules: 500}).save(path); err != nil {
		t.Fatal(err)
	}
	if s, err := load(path, "b", 1, false); !errors.Is(err, errOtherTree) || s.Schedules != 0 || s.Tree != "b" {
		t.Errorf("got %+v, %v; want a new state and %v", s, err, errOtherTree)
	}
	for range 2 { // the second time, the code is the same
		s, err := load(path, "b", 1, true)
		if err != nil || s.Schedules != 500 || s.Tree != "b" || s.Versions != 2 {
			t.Errorf("with keep: got %+v, %v; want the old state and 2 versions", s, err)
		}
		if err := s.save(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := load(path, "a", 2, false); err == nil {
		t.Error("the state of another first seed was accepted")
	}
}

func TestPageStatesTheResult(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("Before.\n\n<!-- written by make sim -->\nold\n<!-- end -->\n\nAfter.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := state{Versions: 3, FirstSeed: 1, Schedules: 1_000_000, Terms: 34_567, Processor: 90 * time.Minute, Updated: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	if err := s.writePage(page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	want := "Before.\n\n<!-- written by make sim -->\n\n1,000,000 simulated schedules with 34,567 terms: no invariant was violated" +
		" (3 versions of the code, the last of 2026-01-02, 1h30m0s of processor time; `make sim N=1000000`).\n\n<!-- end -->\n\nAfter.\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
