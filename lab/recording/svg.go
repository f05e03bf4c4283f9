package main

import (
	_ "embed"
	"fmt"
	"html"
	"slices"
	"strings"
	"text/template"
	"time"
)

// rest is how long the picture shows the end of the run before it begins again.
const rest = 3 * time.Second

// Sizes in pixels.
const (
	laneHeight = 42
	laneTop    = 64
	coverTop   = 54  // of what hides the time to come
	timeLeft   = 96  // where the time axis begins
	timeWidth  = 684 // of the whole animation
	lineHeight = 20
)

//go:embed recording.svg.tmpl
var layout string

// The values are escaped by draw.
var page = template.Must(template.New("recording").Parse(layout))

type palette struct{ Paper, Ink, Faint, Rule, Lead, Kill string }

// palettes are the colors for light and for dark pages.
var palettes = map[string]palette{
	"light": {Paper: "#ffffff", Ink: "#1f2328", Faint: "#59636e", Rule: "#d1d9e0", Lead: "#1a7f37", Kill: "#cf222e"},
	"dark":  {Paper: "#0d1117", Ink: "#f0f6fc", Faint: "#9198a1", Rule: "#3d444d", Lead: "#3fb950", Kill: "#f85149"},
}

type lane struct {
	Name string
	Y    int
}

type drawnBar struct {
	X, Width float64
	Y        int
	Killed   float64 // where a cross marks the kill; 0 for none
	Label    string
}

type line struct {
	Number int
	Y      int
	Time   string
	Text   string
	Kill   bool
	Until  float64 // percentage of the animation before the line appears
	From   float64
}

type picture struct {
	Width, Height                int
	Seconds                      string
	Left, TimeWidth, CoverHeight int
	Lanes                        []lane
	Bars                         []drawnBar
	Lines                        []line
	Description                  string
	Colors                       palette
}

// draw returns the picture of a run in the colors of a palette.
func draw(events []event, colors palette) (string, error) {
	began := events[0].Time
	whole := events[len(events)-1].Time.Sub(began) + rest
	share := func(d time.Duration) float64 { return float64(d) / float64(whole) }

	var names []string
	terms := bars(events)
	for _, t := range terms {
		if !slices.Contains(names, t.node) {
			names = append(names, t.node)
		}
	}
	slices.Sort(names)
	p := picture{
		Colors: colors, Width: timeLeft + timeWidth + 20, Left: timeLeft, TimeWidth: timeWidth,
		Seconds:     fmt.Sprintf("%.1f", whole.Seconds()),
		Description: html.EscapeString("A recorded run of make demo: " + events[len(events)-1].text() + "."),
	}
	for i, name := range names {
		p.Lanes = append(p.Lanes, lane{html.EscapeString(name), laneTop + i*laneHeight})
	}
	below := laneTop + len(names)*laneHeight
	p.CoverHeight = below - coverTop
	for _, t := range terms {
		from, to := share(t.from)*timeWidth, share(t.to)*timeWidth
		drawn := drawnBar{X: timeLeft + from, Width: max(2, to-from), Y: laneTop + slices.Index(names, t.node)*laneHeight}
		if t.killed {
			drawn.Killed = timeLeft + to
		}
		if t.takeover > 0 {
			drawn.Label = "after " + milliseconds(t.takeover)
		}
		p.Bars = append(p.Bars, drawn)
	}
	for i, e := range events {
		at := e.Time.Sub(began)
		shown := line{
			Number: i, Y: below + (i+1)*lineHeight, Text: html.EscapeString(e.text()), Kill: e.Event == "killed",
			Until: 100 * share(at), From: 100*share(at) + 0.01,
		}
		if e.Event != "summary" {
			shown.Time = fmt.Sprintf("%.3f s", at.Seconds())
		}
		p.Lines = append(p.Lines, shown)
	}
	p.Height = below + (len(events)+1)*lineHeight
	var drawn strings.Builder
	err := page.Execute(&drawn, p)
	return drawn.String(), err
}
