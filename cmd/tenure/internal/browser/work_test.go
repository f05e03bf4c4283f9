package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/dashboard"
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
	value[bool](p, `window.pressed = document.querySelector('`+button+`'), window.pressed.focus(), true`)
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
