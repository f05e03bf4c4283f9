package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

const run = `{"time":"2026-11-25T20:43:32.000Z","event":"elected","node_name":"a<b","pid":1,"term":1}
{"time":"2026-11-25T20:43:35.000Z","event":"killed","node_name":"a<b","pid":1,"term":1}
{"time":"2026-11-25T20:43:35.007Z","event":"elected","node_name":"c","pid":2,"term":2,"replaced":"a<b","failover_seconds":0.007}
{"time":"2026-11-25T20:43:36.000Z","event":"summary","failovers":1,"median_seconds":0.007,"fastest_seconds":0.007,"slowest_seconds":0.007}
`

// drawn returns the picture of a run, whose XML is well formed.
func drawn(t *testing.T, run string) string {
	t.Helper()
	events, err := readEvents(strings.NewReader(run))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := draw(events, palettes["dark"])
	if err != nil {
		t.Fatal(err)
	}
	checkXML(t, picture)
	return picture
}

func checkXML(t *testing.T, picture string) {
	t.Helper()
	tokens := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := tokens.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

func TestPictureShowsEveryTerm(t *testing.T) {
	picture := drawn(t, run)
	for _, want := range []string{
		`<rect x="96.0" y="64" width="293.1" height="16"`, // 3 of 7 s, on the first lane
		`<rect x="389.8" y="106"`,                         // on the second lane, after the kill
		"after 7.0 ms", "✕", "a&lt;b is killed", "c leads, 7.0 ms after a&lt;b was killed",
		"1 failovers: median 7.0 ms", "--paper: #0d1117", "prefers-reduced-motion",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q:\n%s", want, picture)
		}
	}
	if n := strings.Count(picture, "✕"); n != 1 {
		t.Errorf("%d kills are marked, want 1", n)
	}
}

func TestIncompleteRunsAreRejected(t *testing.T) {
	lines := strings.SplitAfter(run, "\n")
	for name, run := range map[string]string{
		"empty":          "",
		"interrupted":    strings.Join(lines[:3], ""),
		"without leader": strings.Join(lines[1:], ""),
		"no failover":    lines[0] + strings.ReplaceAll(lines[3], `"failovers":1`, `"failovers":0`),
		"other event":    lines[0] + `{"event":"lost"}` + "\n" + lines[3],
		"no JSON":        "text\n",
	} {
		if events, err := readEvents(strings.NewReader(run)); err == nil {
			t.Errorf("%s: got %d events, want an error", name, len(events))
		}
	}
}

func TestCommittedPicturesAreComplete(t *testing.T) {
	for colors := range palettes {
		name := "../../docs/images/demo-" + colors + ".svg"
		picture, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		checkXML(t, string(picture))
		if !strings.Contains(string(picture), "4 failovers: median ") {
			t.Errorf("%s is not a picture of a run with four failovers: run make recording", name)
		}
	}
}
