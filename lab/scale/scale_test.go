package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestRunMeasuresEachKindBesideItsLimit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "scale.json")
	var printed bytes.Buffer
	o := options{writers: []int{2}, rounds: 1, length: 100 * time.Millisecond, json: file}
	if err := o.run(t.Context(), &printed); err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Doorbell) != 3 || len(r.Latency) != len(loads) {
		t.Fatalf("the record has %d kinds of commits and %d loads; want 3 and %d", len(r.Doorbell), len(r.Latency), len(loads))
	}
	for _, rate := range r.Doorbell {
		if len(rate.Rates) != 1 || len(rate.Beside) != 1 || len(rate.Bare) != 1 || rate.Ratio <= 0 {
			t.Errorf("%+v; want a rate of each", rate)
		}
	}
	for _, l := range r.Latency {
		if l.Is.Events == 0 || l.Bare.Events == 0 || l.Is.Max <= 0 {
			t.Errorf("%+v; want events of both readers", l)
		}
	}
}

func TestRunMeasuresCrowds(t *testing.T) {
	t.Parallel()
	for _, members := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "scale.json")
		var printed bytes.Buffer
		o := options{only: "crowds", nodes: []int{3}, lockWaits: "on", members: members, settle: time.Second, rest: 4 * time.Second, json: file}
		if err := o.run(t.Context(), &printed); err != nil {
			t.Fatalf("%v\n%s", err, printed.String())
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Crowds) != 1 {
			t.Fatalf("the record has %d crowds, want 1", len(r.Crowds))
		}
		if c := r.Crowds[0]; c.Joined <= 0 || c.Returned <= 0 || runtime.GOOS == "linux" && (c.JoinCPU <= 0 || c.ReturnCPU <= 0 || c.Session <= 0 || c.Watch <= 0 || c.Rest.WAL <= 0 || c.Rest.Commands <= 0 || c.Rest.Memory <= 0) {
			t.Errorf("%+v; want all figures", c)
		}
	}
}

func TestParseRejectsNoWriters(t *testing.T) {
	for _, args := range [][]string{{"-writers=0"}, {"-writers=many"}, {"-writers="}, {"-nodes=0"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
