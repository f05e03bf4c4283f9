package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sampleRecord() record {
	return record{
		Format: recordFormat,
		Run: parameters{
			Started: at(0), Rounds: 2, SlowRounds: 1, Nodes: 3, Roles: 1000, Lease: 3000, Slow: 15,
			PostgreSQL: "15.18", Go: "go1.26", OS: "linux", Arch: "amd64", CPUs: 2, Commit: "abc", Modified: true,
		},
		Faults: []faultRecord{
			{
				Fault: "sigkill", Bound: "p99 < 15", SlowAbove: 15, Causes: map[string]int{causeServer: 1},
				Summary:   &summary{2, 4, 20, 20, pointer(3), pointer(1.333), pointer(3.5), pointer(1.143), 0},
				Histogram: []bucket{{3, 0, 2}, {5, 1, 0}, {20, 1, 0}},
				Rounds: []roundRecord{
					{1, at(0), 4, pointer(3), pointer(3.5), "", "", "", facts{Noticed: pointer(1), Woken: pointer(2), Tries: 1, Trying: 1}},
					{2, at(9000), 20, pointer(3), pointer(3.5), "a note", causeServer, "a flush", facts{Flushing: 14}},
				},
			},
			{Fault: "network-cut", NotMeasured: "no privilege"},
		},
		Costs: []costRecord{
			{Cost: costAtRest, Nodes: 3, Roles: 1, Seconds: 60, Statements: pointer(0.3), Sent: []statementCount{{"heartbeat", 54}}},
			{Cost: costMemory, Nodes: 2, Roles: 1, Resident: pointer(14)},
			{Cost: costMemory, Nodes: 2, Roles: 1, NotMeasured: "no /proc"},
		},
	}
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	want := sampleRecord()
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documented, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		name, _, isField := strings.Cut(strings.TrimSpace(line), ":")
		name = strings.Trim(name, `"`)
		if isField && name != causeServer && !strings.Contains(string(documented), "`"+name+"`") {
			t.Errorf("README.md does not document the field %s", name)
		}
	}
}

func TestOtherFilesAreNotRead(t *testing.T) {
	for content, want := range map[string]string{"rubbish": "not written by -json", `{"format": 99}`: "format 99"} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecord(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
}

func TestPlotIsDrawnFromARecord(t *testing.T) {
	r := sampleRecord()
	r.Faults[0].Fault = "sigkill <b>"
	svg, err := plot(r)
	if err != nil {
		t.Fatal(err)
	}
	bars := strings.Count(svg, `<rect class="bar" x`) - 1 // the legend has one
	if bare := strings.Count(svg, `<rect class="bare" x`) - 1; bars != 2 || bare != 1 {
		t.Errorf("got %d bars and %d of the bare waiter, want 2 and 1", bars, bare)
	}
	for _, want := range []string{"prefers-color-scheme: dark", "p50 4.0, p99 20.0", "&lt;b&gt;", "PostgreSQL 15.18"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
	for reader := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := reader.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plot(record{}); err == nil {
		t.Error("a record without rounds was drawn, want an error")
	}
}

func TestAxisCoversWholeDecades(t *testing.T) {
	rows := []plotted{{"a", nil, []bucket{{3, 1, 0}}}, {"b", nil, []bucket{{1500, 1, 0}, {3000, 1, 0}}}}
	a := axisOf(rows)
	if a.from < 0.99 || a.from > 1.01 || a.to < 9_999 || a.to > 10_001 {
		t.Errorf("got %v, want 1 to 10000 ms", a)
	}
	if left, right := a.x(0.1), a.x(1e9); left != plotLeft || right != plotRight {
		t.Errorf("got %v and %v, want what lies outside at the edges", left, right)
	}
}
