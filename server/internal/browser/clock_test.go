package browser

import (
	"testing"

	documents "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestWrongBrowserClockDoesNotChangeAges: a browser whose clock is wrong shows how long ago things were
// all the same.
func TestWrongBrowserClockDoesNotChangeAges(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	for name, ahead := range map[string]string{"ahead": "7200e3", "behind": "-7200e3"} {
		p := w.open("")
		p.do("change the clock", command(documents.AddScriptToEvaluateOnNewDocument, documents.AddScriptToEvaluateOnNewDocumentParams{
			Source: "const right = Date.now; Date.now = () => right() + " + ahead,
		}), chromedp.Reload())
		p.await("the role is shown", row("scheduler")+`?.includes("api-1")`)
		p.await("the event is shown", `document.querySelector(".entries time") !== null`)
		for _, shown := range []string{row("scheduler"), `document.querySelector(".entries").innerText`} {
			p.await("no hours have gone by", `document.querySelector(".list .row") && !/ h|now/.test(`+shown+`)`)
		}
		t.Log(name, value[string](p, `document.querySelector(".entries time").innerText`))
	}
}
