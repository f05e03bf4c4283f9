package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// graphOf is an expression for the element of a graph by its title.
func graphOf(title string) string {
	return `[...document.querySelectorAll(".graph")].find((g) => g.querySelector(".timeline").getAttribute("aria-label").startsWith(` + quote(title+".") + `))`
}

// The graphs show the stored samples with the keyboard alone: single values, a table, and
// gaps as such. The range is in the address, and an opened link shows the same.
func TestGraphsShowStoredSamples(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("#/metrics?range=6h")
	p.shows("busiest node")
	p.await("the range is that of the address", `document.querySelector("select").value === "6h" && /as of .*latest sample \d+ .*earlier/.test(document.body.innerText)`)
	p.focus(`document.querySelector("select")`)
	p.do("choose the range of an hour", chromedp.KeyEvent("1"))
	p.await("the address has no range", `document.querySelector("select").value === "1h" && location.hash === "#/metrics"`)
	p.await("the graph is described", graphOf("Load")+`?.querySelector(".timeline").getAttribute("aria-label").match(/mean: [0-9.]+ % to [0-9.]+ %.*busiest node/) !== null`)
	p.focus(graphOf("Load") + `?.querySelector(".timeline")`)
	p.do("show the latest values", chromedp.KeyEvent(kb.End))
	p.await("they are shown", graphOf("Load")+`.querySelector(".tip").innerText.match(/mean: [0-9.]+ %/) !== null`)
	p.await("and read", `document.getElementById("announcements").textContent.includes("busiest node")`)
	p.focus(graphOf("Load") + `.querySelector("summary")`)
	p.do("open the table", chromedp.KeyEvent("\r"))
	p.await("the table has values and the gap", graphOf("Load")+`.querySelector("details[open] tbody")?.innerText.includes("no sample") && `+graphOf("Load")+`.querySelectorAll("tbody tr").length > 30`)

	p.visit("#/metrics?range=30d")
	p.shows("No daily totals are stored")
	if n := value[int](p, `[...document.querySelectorAll(".graph canvas")].filter((c) => c.checkVisibility()).length`); n > 0 {
		t.Errorf("%d graphs are shown without data", n)
	}
	p.visit("#/node/{api-1}")
	p.await("a node has its own graphs", graphOf("Work")+`?.innerText.includes("in flight")`)
	p.focus(`document.querySelector('select[aria-label="Range of the graphs"]')`)
	p.do("choose six hours", chromedp.KeyEvent("6"))
	p.await("the address has the range", `location.hash.endsWith("?range=6h")`)
	p.do("load again", chromedp.Reload())
	p.await("the range is the same", `document.querySelector('select[aria-label="Range of the graphs"]')?.value === "6h"`)
}

// While another range is read, the graphs of the earlier one are not shown beneath its name.
func TestGraphsOfEarlierRangeAreHidden(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("#/metrics")
	p.shows("busiest node")
	value[bool](p, `(window.answered = window.fetch, window.fetch = () => new Promise(() => {}), true)`)
	p.focus(`document.querySelector("select")`)
	p.do("choose six hours", chromedp.KeyEvent("6"))
	p.shows("Loading")
	if value[bool](p, graphOf("Load")+`.checkVisibility()`) {
		t.Error("the graphs of the hour are shown as those of six hours")
	}
	value[bool](p, `(window.fetch = window.answered, document.querySelector("select").dispatchEvent(new Event("change")))`)
	p.await("the graphs of six hours", graphOf("Load")+`?.checkVisibility()`)
}

// Lines end where samples are missing: no pixel of a line is between them.
func TestGraphsDoNotCrossGaps(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("#/metrics")
	p.shows("busiest node")
	// The samples of 30 to 20 minutes ago are missing: there, only the lines of the axis are drawn.
	const drawn = `((from, to) => {
		const canvas = GRAPH.querySelector("canvas"), c = canvas.getContext("2d"), ratio = devicePixelRatio, width = canvas.width / ratio;
		const at = (minutes) => (58 + (1 - minutes / 60) * (width - 72)) * ratio;
		const { data } = c.getImageData(at(from), 0, at(to) - at(from), (170 - 24) * ratio);
		let colored = 0;
		for (let i = 0; i < data.length; i += 4) colored += data[i + 3] > 40 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60;
		return colored;
	})`
	pixels := func(from, to int) int {
		t.Helper()
		return value[int](p, fmt.Sprintf("%s(%d, %d)", strings.Replace(drawn, "GRAPH", graphOf("Load"), 1), from, to))
	}
	if in, before := pixels(27, 23), pixels(40, 36); in != 0 || before == 0 {
		t.Errorf("%d pixels of lines are drawn in the gap, %d before it", in, before)
	}
}

// Without samples, the page says what to do, and shows no axis.
func TestGraphsWithoutSamplesShowNoAxis(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("#/metrics")
	p.shows("No samples are stored. Nodes store samples if they serve --listen")
	p.await("the time is shown", `/as of \d\d:\d\d/.test(document.body.innerText)`)
	p.visit("#/")
	p.shows("scheduler")
	p.visit("#/node/{api-1}")
	p.shows("No samples of this node are stored in this range.")
	if n := value[int](p, `document.querySelectorAll(".graph").length`); n > 0 {
		t.Errorf("%d graphs are shown", n)
	}
}
