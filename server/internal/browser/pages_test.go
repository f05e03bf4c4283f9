package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// TestAddressKeepsSearchAndOrder: what a user searches, filters and sorts by is in the address, and
// opening that address shows the same.
func TestAddressKeepsSearchAndOrder(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("")
	p.shows("tenant-01")
	p.do("search", chromedp.SendKeys(`input[type="search"]`, "tenant"))
	p.do("sort", chromedp.Click(`.list .titles button`))
	p.await("both are in the address", `location.hash === "#/?search=tenant&sort=name"`)
	p.do("open it again", chromedp.Navigate("about:blank"), chromedp.Navigate(w.url+"#/?search=tenant&sort=name&down=1"))
	p.await("the last role is first", `document.querySelector(".list .row")?.innerText.startsWith("tenant-12") && document.querySelector('input[type="search"]').value === "tenant"`)
	p.visit("#/events?kind=node&search=api-4")
	p.await("the filter is set", `document.querySelector("select").value === "node" && document.querySelector('input[type="search"]').value === "api-4"`)
	p.visit("#/timeline?range=86400")
	p.await("the range is set", `document.querySelector("select").value === "86400"`)
	p.visit("#/audit?search=anna")
	p.await("the search is set", `document.querySelector('input[type="search"]').value === "anna"`)
	p.do("search for another", chromedp.SendKeys(`input[type="search"]`, "b"))
	p.await("it is in the address", `location.hash === "#/audit?search=annab"`)
	for _, hash := range []string{"#/nothing", "#/nodes/x", "#/node", "#/constructor"} {
		p.visit(hash)
		p.shows("There is no such page.")
	}
	for hash, text := range map[string]string{"#/node/x": "No node with this id is known.", "#/schedule/%ff": "No schedule with this name", "#/processor/x": "No processor with this name"} {
		p.visit(hash)
		p.shows(text)
	}
	p.forgive("404")
}

// TestTimesAreShownInUTC: the keyboard alone switches all times to UTC, and the choice stays.
func TestTimesAreShownInUTC(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("")
	p.shows("tenant-01")
	const formatted = `new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", hourCycle: "h23", timeZone: "UTC" }).format(new Date(document.querySelector(".entries time")?.dateTime ?? 0))`
	p.focus(`document.querySelector("#times button")`)
	p.do("press", chromedp.KeyEvent("\r"))
	p.await("times are UTC, and the button keeps the focus", `document.querySelector(".entries time")?.title === `+formatted+` && document.activeElement.innerText === "UTC"`)
	p.do("load again", chromedp.Navigate("about:blank"), chromedp.Navigate(w.url))
	p.await("they still are", `document.querySelector(".entries time")?.title === `+formatted)
}

// TestTitleAndIconShowTrouble: a role without a leader is visible in the title and the
// icon of the window.
func TestTitleAndIconShowTrouble(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, func(w *world) {
		w.exec(`INSERT INTO {processors} (name, kind, role, status, last_error) VALUES ('webhooks', 'outbox', 'views', 'failed', 'refused')`)
	})
	p := w.open("")
	p.await("trouble is visible", `document.title.startsWith("✖ Overview") && document.querySelector('link[rel="icon"]').href.endsWith("icon-critical.svg")`)
	w.exec(`DELETE FROM {processors}`)
	p.await("it is over", `!document.title.startsWith("✖") && !document.querySelector('link[rel="icon"]').href.includes("critical")`)
}

// TestPrintHasEveryRow: printing shows every row of a table, with the cluster and the time, and
// afterwards only the rows in view exist.
func TestPrintHasEveryRow(t *testing.T) {
	w := newWorld(t, dashboard.Config{Title: "billing"}, seed)
	p := w.open("#/role/scheduler")
	p.await("rows", `document.querySelectorAll(".list .row").length > 0`)
	const total = `Number(document.querySelector(".list").getAttribute("aria-rowcount")) - 1`
	if value[int](p, total) < 25 {
		t.Fatalf("there are %d terms", value[int](p, total))
	}
	value[bool](p, `window.print = () => { window.printed = [document.querySelectorAll(".list .row").length, document.getElementById("printed").textContent]; }, document.dispatchEvent(new KeyboardEvent("keydown", { key: "p", ctrlKey: true, bubbles: true })), true`)
	p.await("every row is printed", `window.printed?.[0] === `+total+` && window.printed[1].includes("billing") && window.printed[1].includes(String(new Date().getFullYear()))`)
	p.await("only the rows in view remain", `document.querySelectorAll(".list .row").length < `+total)
}

// TestSchedulePageShowsOutput: the page of a schedule shows the output of a run as
// text when the user asks for it.
func TestSchedulePageShowsOutput(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, seed)
	p := w.open("")
	p.logIn()
	p.visit("#/work")
	p.do("open the schedule", chromedp.Click(`a[href="#/schedule/nightly-report"]`))
	p.shows("exit status 3")
	p.do("open the output", chromedp.Click(`[data-action^="output "]`))
	p.shows("cannot open <report>")
	p.visit("#/processor/webhooks")
	p.do("replay", chromedp.Click(`[data-action="replay all"]`), chromedp.WaitVisible("dialog"), chromedp.Click("dialog .primary"))
	p.shows("handles 3 dead letters again")
	p.do("close", chromedp.Click("dialog .buttons button"))
	p.await("they are marked", `document.body.innerText.match(/replay requested/g)?.length === 3`)
}
