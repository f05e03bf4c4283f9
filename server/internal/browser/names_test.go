package browser

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// cutsItsEnd is a function that reports whether the last letters of an element are outside of its box.
const cutsItsEnd = `((e) => {
	const texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
	while (texts.nextNode());
	const range = document.createRange(), last = texts.currentNode, box = e.getBoundingClientRect();
	range.setStart(last, last.length - 5);
	range.setEnd(last, last.length);
	const end = range.getBoundingClientRect();
	return end.width > 0 && (end.left < box.left || end.right > box.right + 0.5 || end.bottom > box.bottom + 0.5);
})`

// TestNamesThatAreCutKeepTheirEnd: the names of pods differ only at their end, which is shown wherever
// nodes and leaders are listed, on phones and on screens.
func TestNamesThatAreCutKeepTheirEnd(t *testing.T) {
	w := newWorld(t, bare, nil)
	for i, end := range []string{"x7k2p", "m4q8z"} {
		node := w.node(w.backend, "shop-api-in-the-region-eu-west-1-7c9d8b6f5d-"+end, tenure.Config{})
		role := fmt.Sprintf("shard-of-the-customers-of-europe-%05d", i)
		w.campaign(node, role)
		w.leads(node, role)
	}
	p := w.open("")
	for _, width := range geometryWidths {
		p.window(width)
		for _, hash := range []string{"#/", "#/nodes"} {
			p.visit(hash)
			p.await("the nodes", `[...document.querySelectorAll("main .name")].filter((e) => e.innerText.startsWith("shop-api-")).length >= 2`)
			p.settle()
			for _, cut := range value[[]string](p, `[...document.querySelectorAll("main .name")].filter((e) => e.innerText.length > 20).filter(`+cutsItsEnd+`).map((e) => e.innerText)`) {
				t.Errorf("%s at %d pixels: the end of %s is not shown", hash, width, cut)
			}
		}
	}
}

// TestLongLeasesFit: what is left of a lease of minutes has space in its column.
func TestLongLeasesFit(t *testing.T) {
	w := newWorld(t, bare, nil)
	node := w.node(w.backend, "api-1", tenure.Config{Lease: 11 * time.Minute})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("")
	p.window(1440)
	const figure = `document.querySelector(".list .metered .figure")`
	p.await("the lease", figure+`?.innerText.startsWith("10 min")`)
	if over := value[float64](p, figure+`.getBoundingClientRect().right - `+figure+`.closest(".cell").getBoundingClientRect().right`); over > 0.5 {
		t.Errorf("%q is cut by %.0f pixels", value[string](p, figure+".innerText"), over)
	}
}

// TestSkipLinkReachesTheContent: the first press of Tab offers to skip the menu, and Enter does so on
// the page at hand.
func TestSkipLinkReachesTheContent(t *testing.T) {
	w := newWorld(t, bare, nil)
	p := w.open("#/nodes")
	p.shows("No node has joined yet")
	p.do("tab", chromedp.KeyEvent(kb.Tab))
	p.await("the link has the focus", `document.activeElement.matches(".skip")`)
	p.do("enter", chromedp.KeyEvent(kb.Enter))
	p.await("the content has the focus", `document.activeElement.id === "main"`)
	if got := value[string](p, `location.hash + " " + document.querySelector("h1").innerText`); got != "#/nodes Nodes" {
		t.Errorf("the page is %q, want that of the nodes", got)
	}
}

// TestAlertsHaveTheirNamesOnAPhone: the name of an alert has the width of its column.
func TestAlertsHaveTheirNamesOnAPhone(t *testing.T) {
	w := newWorld(t, dashboard.Config{Alerts: someAlerts}, nil)
	p := w.open("#/alerts")
	p.window(390)
	p.shows("firing")
	const names = `[...document.querySelectorAll("main td .name")]`
	p.await("the names", names+`.some((e) => e.innerText === "no_scheduler_leader")`)
	for _, cut := range value[[]string](p, names+`.filter((e) => [e, ...e.children].some((part) => part.scrollWidth > part.clientWidth + 1)).map((e) => e.innerText)`) {
		t.Errorf("%s is cut", cut)
	}
}

// TestVacancyIsStatedInFull: the banner states how long a role has had no leader before other problems,
// which have lasted for another time. The incident has the cause in full, and the width of a phone.
func TestVacancyIsStatedInFull(t *testing.T) {
	w := newWorld(t, dashboard.Config{Alerts: someAlerts}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.node(w.backend, "api-2", tenure.Config{})
	election, err := node.Election(tenure.NamedRole("mailer"))
	if err != nil {
		t.Fatal(err)
	}
	const cause = "the command ended 6 times in a row, most recently with exit code 3"
	var ended sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	ended.Go(func() {
		_ = election.Run(ctx, func(context.Context, *tenure.Term) error { cancel(); return errors.New(cause) }) // it is the cause
	})
	ended.Wait()
	p := w.open("#/events")
	p.await("the banner", `/^No node leads \S*mailer\S*\. For [\d.]+ s\. 1 alert fires\.$/.test(document.getElementById("health").innerText.trim())`)
	const because = `[...document.querySelectorAll("main .list bdi")].filter((e) => e.innerText.includes("the command"))`
	p.await("the cause", because+`.length > 0`)
	for _, width := range geometryWidths {
		p.window(width)
		p.settle()
		if value[bool](p, because+`.some(`+cutsItsEnd+`)`) {
			t.Errorf("the cause is cut at %d pixels", width)
		}
	}
	p.window(390)
	if wide := value[float64](p, `document.querySelector("#incident p").getBoundingClientRect().width`); wide < 320 {
		t.Errorf("the incident is %.0f pixels wide on a phone of 390", wide)
	}
	p.visit("#/incident/latest")
	p.shows("The node recorded why: \u2068" + cause)
}

// TestServerChangeContinuesASentence: the reason for the end of a term follows the name of its node.
func TestServerChangeContinuesASentence(t *testing.T) {
	p := newWorld(t, bare, nil).open("")
	got := value[string](p, `import(new URL("assets/format.js", location.href)).then((format) => "api-1 " + format.reason("server_changed"))`)
	if want := "api-1 lost its locks"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNodeIsChosenByTypingItsName: of many nodes to hand over to, the one whose name is typed is chosen.
func TestNodeIsChosenByTypingItsName(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	for i, name := range []string{"api-1", "api-2", "api-3", "api-4"} {
		node := w.node(w.backend, name, tenure.Config{})
		w.campaign(node, "scheduler")
		if i == 0 {
			w.leads(node, "scheduler")
		}
	}
	p := w.open("")
	p.logIn()
	p.visit("#/role/scheduler")
	const open = `button[data-action="hand_over scheduler"]`
	p.await("the button", `document.querySelector('`+open+`') !== null`)
	p.focus(`document.querySelector('` + open + `')`)
	p.do("open the dialog", chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog select"))
	last := value[string](p, `document.activeElement.options[2].innerText.match(/api-\d/)[0]`)
	p.do("type "+last, chromedp.KeyEvent(last))
	if got := value[string](p, `document.activeElement.selectedOptions[0].innerText.match(/api-\d/)[0]`); got != last {
		t.Errorf("%s is chosen after %s was typed", got, last)
	}
}
