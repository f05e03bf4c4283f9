package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestPausedProcessorIsShown: a processor is paused while its figures change, and the page shows
// both; what has the focus keeps it.
func TestPausedProcessorIsShown(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, func(w *world) {
		w.exec(`INSERT INTO {processors} (name, kind, role, processed) VALUES ('invoices', 'view', 'views', 1000), ('webhooks', 'view', 'views', 2)`)
	})
	p := w.open("")
	p.logIn()
	p.visit("#/work")
	p.shows("1,000")
	const button = `button[data-action="processor invoices"]`
	p.focus("(window.pressed = document.querySelector('" + button + "'))")
	w.exec(`UPDATE {processors} SET processed = 2345 WHERE name = 'invoices'`)
	p.shows("2,345")
	if !value[bool](p, `document.activeElement === window.pressed && window.pressed.isConnected`) {
		t.Error("the button was replaced")
	}
	p.do("pause", chromedp.Click(button), chromedp.WaitVisible("dialog"), chromedp.Click("dialog .primary"))
	p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("is paused")`)
	p.do("close", chromedp.Click("dialog .buttons button"))
	p.await("it can be resumed, and the focus is there", `document.querySelector('`+button+`').innerText === "Resume" && document.activeElement.matches('`+button+`')`)
}

// TestFailingWorkIsRedOnAPhone: a schedule that failed every time, and a processor whose receiver
// refuses, are red with their errors, on a phone and in the banner.
func TestFailingWorkIsRedOnAPhone(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, func(w *world) {
		w.exec(`INSERT INTO {processors} (name, kind, role, errors, last_error) VALUES ('webhooks', 'outbox', 'views', 4, 'the receiver answered 500')`)
		w.exec(`INSERT INTO {schedules} (name, role, expression, timezone) VALUES ('nightly', 'views', '30 2 * * *', 'UTC')`)
		w.exec(`INSERT INTO {runs} (schedule, scheduled_for, state, started_at, ended_at, error)
			SELECT 'nightly', now() - n * interval '1 day', 'failed', now(), now(), 'exit status 3' FROM generate_series(1, 31) n`)
	})
	p := w.open("")
	p.await("the banner has the error", `document.getElementById("health").matches(".critical") && document.getElementById("health").innerText.match(/webhooks\S* failed 4 times in a row: \S*the receiver answered 500\S*\. 1 more problem in Work\./)`)
	p.onPhone()
	p.visit("#/work")
	for name, texts := range map[string][]string{"webhooks": {"failing", "the receiver answered 500"}, "nightly": {"failed 31 times in a row", "exit status 3"}} {
		for _, text := range texts {
			p.await(name+" shows "+text, `[...document.querySelectorAll("tr")].find((row) => row.innerText.includes("`+name+`"))?.querySelectorAll(".is-critical").length > 1 &&
				[...document.querySelectorAll("tr")].find((row) => row.innerText.includes("`+name+`")).innerText.includes("`+text+`")`)
		}
	}
	if *images != "" {
		p.writeScreenshot("failing-work-phone")
	}
}

// TestDeadLettersAreYellowEverywhere: an outbox that works but has dead letters is a warning with their
// number in the banner, the row, the icon and the title, with a link to the letters, on a phone too.
func TestDeadLettersAreYellowEverywhere(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, func(w *world) {
		w.exec(`INSERT INTO {processors} (name, kind, role) VALUES ('webhooks', 'outbox', 'views')`)
		w.exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
			SELECT 'webhooks', '7', n, 'the receiver answered 400', 5, 1 FROM generate_series(1, 3) n`)
	})
	one, two := w.node(w.backend, "api-1", tenure.Config{}), w.node(w.backend, "api-2", tenure.Config{})
	w.campaign(one, "views")
	w.leads(one, "views")
	w.campaign(two, "views")
	p := w.open("")
	p.onPhone()
	p.await("the banner is a warning with their number", `document.getElementById("health").matches(".warning") && /webhooks\S* has 3 dead letters\./.test(document.getElementById("health").innerText)`)
	const link = `#incident a[href="#/processor/webhooks"]`
	p.await("a link leads to them", `document.querySelector('`+link+`')?.innerText === "Details" && document.querySelector("#incident > .is-warning").innerText.includes("3 dead letters")`)
	if text := value[string](p, `document.getElementById("incident").innerText`); strings.Contains(text, "next attempt") {
		t.Errorf("a processor that does not fail tries again: %s", text)
	}
	p.await("the title and the icon are warnings", `document.title.startsWith("⚠") && document.querySelector('link[rel="icon"]').href.endsWith("icon-warning.svg")`)
	p.visit("#/work")
	p.await("the row is a warning with their number", `[...document.querySelectorAll("tr .narrow .is-warning")].some((state) => state.innerText.includes("3 dead letters") && state.getBoundingClientRect().right <= innerWidth)`)
	if *images != "" {
		p.writeScreenshot("dead-letters-phone")
	}
	p.do("follow the link", chromedp.Click(link))
	p.shows("the receiver answered 400")
}

// TestDeadLettersAreDismissedWithTheKeyboard: with the keyboard alone, a user dismisses one dead letter
// and then all. They stay listed with who dismissed them, and nothing warns.
func TestDeadLettersAreDismissedWithTheKeyboard(t *testing.T) {
	const hostile = "<img src=x onerror=document.title='broken'>"
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, func(w *world) {
		w.exec(`INSERT INTO {processors} (name, kind, role) VALUES ('webhooks', 'outbox', 'views')`)
		w.exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term)
			SELECT 'webhooks', '7', n, 'the receiver answered 400', 5, 1 FROM generate_series(1, 3) n`)
		w.exec(`INSERT INTO {dead_letters} (processor, transaction_id, position, error, attempts, term, dismissed_by, dismissed_at)
			VALUES ('webhooks', '7', 4, 'earlier', 5, 1, $1, now())`, hostile)
	})
	p := w.open("")
	p.logIn()
	p.visit("#/processor/webhooks")
	p.shows(hostile)
	p.await("the banner warns of the others", `document.getElementById("incident").innerText.includes("3 dead letters")`)
	press := func(button string) {
		t.Helper()
		p.focus("document.querySelector('" + button + "')")
		p.do("open the dialog", chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog"))
		p.do("confirm", chromedp.KeyEvent(kb.Tab+kb.Enter))
		p.await("the outcome", `/dismissed\.$/.test(document.querySelector("dialog .answer").innerText)`)
		p.do("close", chromedp.KeyEvent(kb.Enter))
	}
	press(`[data-action^="dismiss "]:not([data-action="dismiss all"])`)
	p.await("one is dismissed by the user", `[...document.querySelectorAll("tr")].filter((row) => /dismissed by .?anna/.test(row.innerText)).length === 1 && document.getElementById("incident").innerText.includes("2 dead letters")`)
	press(`[data-action="dismiss all"]`)
	p.await("all are, and nothing warns", `[...document.querySelectorAll("tr")].filter((row) => /dismissed by/.test(row.innerText)).length === 4 && !document.body.innerText.includes("dead letters.") && !document.querySelector('[data-action="dismiss all"]')`)
	p.visit("#/work")
	p.await("the row does not warn", `[...document.querySelectorAll("tr")].find((row) => row.innerText.includes("webhooks"))?.querySelector(".is-warning") === null`)
	p.visit("#/audit")
	p.shows("dismiss processor")
	if value[string](p, `document.title`) == "broken" {
		t.Error("a name became markup")
	}
}
