package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestDrainAndUndrainAreShown: a node is drained and brought back on the page of nodes, which shows
// both as they happen.
func TestDrainAndUndrainAreShown(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "scheduler")
	w.leads(first, "scheduler")
	second := w.node(w.backend, "api-2", tenure.Config{})
	w.campaign(second, "scheduler")
	p := w.open("")
	p.logIn()
	p.visit("#/nodes")
	button := `button[data-action="drain ` + first.ID().String() + `"]`
	ask := func(outcome string) {
		t.Helper()
		p.do("ask", chromedp.WaitVisible(button), chromedp.Click(button), chromedp.WaitVisible("dialog"), chromedp.Click("dialog .primary"))
		p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("`+outcome+`")`)
		p.do("close", chromedp.Click("dialog .buttons button"))
	}
	p.await("both are active", row("api-1")+`?.includes("active") && `+row("api-2")+`?.includes("active")`)
	ask("drain")
	p.await("api-1 leads nothing and api-2 leads", row("api-1")+`?.includes("drain") && `+row("api-2")+`?.split("\n").includes("1")`)
	w.leads(second, "scheduler")
	ask("is active again")
	p.await("api-1 is back", row("api-1")+`?.includes("active")`)
	p.shows("api-1 is draining, was active, requested by anna")
	p.visit("#/events")
	p.shows("anna asked to drain: api-1")
	p.shows("anna asked to end the drain: api-1")
}

// TestDrainOfLastNodeMustBeConfirmed: to drain the last node is refused, and can then be asked for once
// more on its own.
func TestDrainOfLastNodeMustBeConfirmed(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	only := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(only, "scheduler")
	w.leads(only, "scheduler")
	p := w.open("")
	p.logIn()
	p.visit("#/nodes")
	button := `button[data-action="drain ` + only.ID().String() + `"]`
	p.do("ask", chromedp.WaitVisible(button), chromedp.Click(button), chromedp.WaitVisible("dialog"))
	p.await("nothing is forced yet, and what acts has not the focus", `!document.querySelector("#force") && document.activeElement.innerText === "Cancel"`)
	p.do("drain", chromedp.Click("dialog .primary"))
	p.await("it is refused", `document.querySelector("dialog .answer").innerText.includes("no other node would be active") && document.activeElement.id === "force"`)
	p.do("all the same", chromedp.Click("#force"), chromedp.Click("dialog .primary"))
	p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("drain") && !document.querySelector("dialog .primary")`)
	p.do("close", chromedp.Click("dialog .buttons button"))
	p.await("it drains", row("api-1")+`?.includes("drain")`)
	p.forgive("409")
}
