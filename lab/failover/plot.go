package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
)

// Sizes of the plot, in pixels.
const (
	plotWidth  = 760
	plotLeft   = 170 // of the axis
	plotRight  = 740
	plotTop    = 56
	plotRow    = 92 // of a fault
	plotAbove  = 44 // the highest bar above the base line
	plotBelow  = 22 // and below it
	plotBottom = 34
)

// plotStyle draws on a background of its mode, so that every page can show it.
const plotStyle = `
:root { --page: #ffffff; --text: #1f2328; --quiet: #59636e; --grid: #d1d9e0; --bar: #0969da; --bare: #818b98 }
@media (prefers-color-scheme: dark) {
  :root { --page: #0d1117; --text: #f0f6fc; --quiet: #9198a1; --grid: #3d444d; --bar: #4493f8; --bare: #656c76 }
}
.page { fill: var(--page) } .bar { fill: var(--bar) } .bare { fill: var(--bare) } .grid { stroke: var(--grid) }
text { fill: var(--text); font: 12px system-ui, sans-serif } .quiet { fill: var(--quiet) } .median { stroke: var(--text); stroke-width: 2 }
`

// plotRows are what the plot shows of a record: a row for each fault that was measured.
func plotRows(r record) (rows []plotted) {
	for _, f := range r.Faults {
		if f.Summary != nil && len(f.Histogram) > 0 {
			rows = append(rows, plotted{f.Fault, f.Summary, f.Histogram})
		}
	}
	return rows
}

type plotted struct {
	name    string
	summary *summary
	buckets []bucket
}

// axis is logarithmic, in milliseconds.
type axis struct{ from, to float64 }

func (a axis) x(milliseconds float64) float64 {
	share := math.Log(max(milliseconds, a.from)/a.from) / math.Log(a.to/a.from)
	return plotLeft + min(share, 1)*(plotRight-plotLeft)
}

// axisOf covers all buckets with whole decades.
func axisOf(rows []plotted) axis {
	low, high := math.Inf(1), 0.0
	for _, row := range rows {
		low = min(low, lowerBound(row.buckets[0].UpTo))
		high = max(high, row.buckets[len(row.buckets)-1].UpTo)
	}
	decade := func(round func(float64) float64, of float64) float64 { return math.Pow(10, round(math.Log10(of)-1e-9)) }
	return axis{decade(math.Floor, low*(1+1e-6)), decade(math.Ceil, high)}
}

// lowerBound is where the bucket begins that ends at upTo; the first one at two thirds
// of that.
func lowerBound(upTo float64) float64 {
	lower := upTo * 2 / 3
	for _, bound := range bucketBounds {
		if b := inMilliseconds(bound); b < upTo {
			lower = b
		}
	}
	return lower
}

// writePlot draws a record as an SVG file.
func writePlot(path string, r record) error {
	text, err := plot(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func plot(r record) (string, error) {
	rows := plotRows(r)
	if len(rows) == 0 {
		return "", errors.New("there is nothing to draw: no fault was measured")
	}
	height := plotTop + len(rows)*plotRow + plotBottom
	a := axisOf(rows)
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", plotWidth, height, plotWidth, height)
	svg.WriteString("<title>Time from a fault to the next leader</title>\n<style>" + plotStyle + "</style>\n")
	fmt.Fprintf(&svg, `<rect class="page" width="%d" height="%d"/>`+"\n", plotWidth, height)
	fmt.Fprintf(&svg, `<text x="12" y="22">Rounds by the time from a fault to the next leader, in ms</text>`+"\n")
	fmt.Fprintf(&svg, `<rect class="bar" x="12" y="32" width="10" height="10"/><text class="quiet" x="27" y="41">measured system</text>`+
		`<rect class="bare" x="150" y="32" width="10" height="10"/><text class="quiet" x="165" y="41">bare advisory lock (below the line)</text>`+"\n")
	drawGrid(&svg, a, height-plotBottom)
	for i, row := range rows {
		row.draw(&svg, a, plotTop+i*plotRow+plotRow-plotBelow-6)
	}
	about := fmt.Sprintf("PostgreSQL %s, %s, %d CPUs, %s", r.Run.PostgreSQL, r.Run.Go, r.Run.CPUs, r.Run.Started.Format("2006-01-02"))
	fmt.Fprintf(&svg, `<text class="quiet" x="12" y="%d">%s</text>`+"\n</svg>\n", height-8, html.EscapeString(about))
	return svg.String(), nil
}

func drawGrid(svg *strings.Builder, a axis, bottom int) {
	for at := a.from; at <= a.to*1.001; at *= 10 {
		x := a.x(at)
		fmt.Fprintf(svg, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, plotTop, x, bottom)
		fmt.Fprintf(svg, `<text class="quiet" x="%.1f" y="%d" text-anchor="middle">%.4g</text>`+"\n", x, bottom+14, at)
	}
}

// draw draws one row on a base line: its rounds above and those of the bare waiter below.
func (p plotted) draw(svg *strings.Builder, a axis, base int) {
	name := []rune(p.name)
	if len(name) > 22 {
		name = append(name[:21], '…')
	}
	fmt.Fprintf(svg, `<text x="12" y="%d">%s<title>%s</title></text>`, base-26, html.EscapeString(string(name)), html.EscapeString(p.name))
	fmt.Fprintf(svg, `<text class="quiet" x="12" y="%d">p50 %.1f, p99 %.1f</text>`, base-10, p.summary.P50, p.summary.P99)
	fmt.Fprintf(svg, `<text class="quiet" x="12" y="%d">max %.1f; %d rounds</text>`+"\n", base+6, p.summary.Max, p.summary.Rounds)
	most, mostBare := 1, 1
	for _, b := range p.buckets {
		most, mostBare = max(most, b.Rounds), max(mostBare, b.Bare)
	}
	for _, b := range p.buckets {
		from := a.x(lowerBound(b.UpTo))
		width := max(1, a.x(b.UpTo)-from-1)
		if b.Rounds > 0 {
			high := max(1.5, float64(b.Rounds*plotAbove)/float64(most))
			fmt.Fprintf(svg, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>up to %.4g ms: %d rounds</title></rect>`,
				from, float64(base)-high, width, high, b.UpTo, b.Rounds)
		}
		if b.Bare > 0 {
			high := max(1.5, float64(b.Bare*plotBelow)/float64(mostBare))
			fmt.Fprintf(svg, `<rect class="bare" x="%.1f" y="%d" width="%.1f" height="%.1f"><title>bare, up to %.4g ms: %d rounds</title></rect>`,
				from, base, width, high, b.UpTo, b.Bare)
		}
	}
	median := a.x(p.summary.P50)
	fmt.Fprintf(svg, `<line class="grid" x1="%d" y1="%d" x2="%d" y2="%d"/>`, plotLeft, base, plotRight, base)
	fmt.Fprintf(svg, `<line class="median" x1="%.1f" y1="%d" x2="%.1f" y2="%d"><title>median</title></line>`+"\n", median, base-plotAbove-4, median, base+3)
}
