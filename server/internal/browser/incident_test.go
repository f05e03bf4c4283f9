package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// picture writes what the page looks like at a desk and on a phone, if images are wanted.
func (p *page) picture(name string) {
	p.Helper()
	if *images == "" {
		return
	}
	p.settle()
	p.writeScreenshot(name)
	p.onPhone()
	p.settle()
	p.writeScreenshot(name + "-phone")
	p.do("desk", chromedp.EmulateViewport(1360, 900))
}

func (p *page) onPhone() {
	p.Helper()
	p.do("phone", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
}

// TestCrashIsShownAsOneIncident: the crash of a node with ten roles is one sentence in the banner, with
// its extent and state above the fold of a phone, and a page with the evidence and the
// single changes.
func TestCrashIsShownAsOneIncident(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	wire, backend := w.wired()
	killed := w.node(backend, "api-1", tenure.Config{})
	var roles []string
	for i := range 10 {
		roles = append(roles, fmt.Sprintf("tenant-%d", i))
	}
	w.campaign(killed, roles...)
	for _, role := range roles {
		w.leads(killed, role)
	}
	for _, name := range []string{"api-2", "api-3"} {
		w.campaign(w.node(w.backend, name, tenure.Config{}), roles...)
	}
	p := w.open("")
	p.await("api-1 leads all", `[...document.querySelectorAll(".list .row")].filter((row) => row.innerText.includes("api-1")).length === 10`)
	p.await("it is live", isLive)
	if err := wire.Close(); err != nil {
		t.Fatal(err)
	}
	const bar = `document.getElementById("incident")`
	p.await("the banner", `document.getElementById("health").innerText.match(/api-1\S* crashed at .*Its 10 roles moved to/)`)
	p.await("the extent and the state", bar+`.innerText.match(/Crash[^]*10 roles, 1 node[^]*all roles have a leader again, after/)`)
	p.await("the ages of the latest events are brought up to date", `document.querySelector(".entries li > time").innerText.match(/^([3-9]|\d\d+) s ago$/) && document.querySelector(".entries li .what time")`)
	if at := value[string](p, `document.querySelector(".entries li .what time").innerText`); strings.Contains(at, "ago") {
		t.Errorf("the sentence of the incident has %q in place of its time", at)
	}
	p.onPhone()
	p.await("it is above the fold", `(() => { const box = `+bar+`.getBoundingClientRect(); return scrollY === 0 && box.height > 0 && box.bottom < 844; })()`)
	p.do("desk", chromedp.EmulateViewport(1360, 900))
	p.picture("crash-overview")
	p.focus(bar + `.querySelector("a")`)
	value[bool](p, bar+`.querySelector("a").click(), true`)
	p.shows("The server saw the connection of \u2068api-1\u2069 close at")
	p.await("the single changes", `document.querySelectorAll("main .table tbody tr").length === 10`)
	p.await("a lane for each role", `document.querySelector(".timeline canvas").getBoundingClientRect().height >= 10 * 18`)
	p.picture("crash-incident")
	p.visit("#/events")
	p.shows("Crash: \u2068api-1\u2069 crashed at")
	if ends := value[int](p, `[...document.querySelectorAll(".list .row")].filter((row) => row.innerText.includes("ended:")).length`); ends != 0 {
		t.Errorf("%d single ends are listed beside the incident", ends)
	}
	p.picture("crash-events")
	p.visit("#/failovers")
	p.await("a link to the incident", `document.querySelector('.list .row a[href^="#/incident/"]')?.innerText.includes("crashed")`)
	p.picture("crash-failovers")
	p.visit("#/incident/0123456789abcdef")
	p.shows("This incident is not known")
	p.forgive("404")
}
