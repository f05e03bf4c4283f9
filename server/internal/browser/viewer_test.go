package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

const viewersToken = "another-token-that-is-long-enough"

// TestViewerSeesNoActions: a viewer reads every page, is shown to be one, and gets no button
// that acts; an operator gets them. The page Audit is accessible and names who acted.
func TestViewerSeesNoActions(t *testing.T) {
	script := axe(t)
	known, err := dashboard.Tokens(map[string]string{"anna": token}, map[string]string{"vera": viewersToken})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, dashboard.Config{Authentication: dashboard.Authentication{Token: known}}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("#/login")
	const buttons = `document.querySelectorAll("main button[data-action]").length`
	for _, c := range []struct {
		token, shown string
		acts         bool
	}{{viewersToken, "Log out vera (may view only)", false}, {token, "Log out anna", true}} {
		p.visit("#/login")
		p.do("log in", chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", c.token+"\r"))
		p.shows(c.shown)
		for _, hash := range []string{"#/role/scheduler", "#/nodes"} {
			p.visit(hash)
			p.shows("api-1")
			if c.acts {
				p.await("the buttons of an operator", buttons+" > 0")
			} else if n := value[int](p, buttons); n != 0 {
				t.Errorf("%s: a viewer has %d buttons that act", hash, n)
			}
		}
	}
	p.visit("#/audit")
	p.shows("No operator has changed anything.") // the last reading is recent when the drain comes
	if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestDrain, Node: node.ID(), Force: true, By: "otto"}); err != nil {
		t.Fatal(err)
	}
	p.await("the drain", `document.querySelector("main").innerText.includes("otto")`)
	value[bool](p, script+"; true")
	for _, fault := range value[[]string](p, `axe.run({ resultTypes: ["violations"] }).then((found) => found.violations.flatMap((violation) =>
		violation.nodes.map((node) => violation.id + ": " + node.html)))`) {
		t.Errorf("Audit: %s", fault)
	}
	p.do("phone", chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	p.shows("otto")
	if wide := value[int](p, `Math.max(document.documentElement.scrollWidth, document.querySelector("nav").scrollWidth)`); wide > 360 {
		t.Errorf("Audit is %d pixels wide on a phone of 360", wide)
	}
}
