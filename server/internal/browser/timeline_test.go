package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure/server/dashboard"
)

// pictureOfTimeline is an expression for the picture of a timeline.
const pictureOfTimeline = `document.querySelector(".timeline canvas")?.toDataURL()`

// The range of the timelines of a role and of the cluster is in the address: a reload, the back
// button and a shared link show the same part.
func TestAddressKeepsRangeOfTimelines(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("")
	p.shows("tenant-01")
	for _, page := range []struct{ hash, address string }{
		{"#/role/scheduler", `/^#.role.scheduler\?span=[0-9.]+&end=20\d\d-\d\d-\d\dT[0-9%A:.]+Z$/`},
		{"#/timeline?range=86400", `/^#.timeline\?range=86400&from=20[0-9TZ%A:.-]+&to=20[0-9TZ%A:.-]+$/`},
	} {
		p.visit(page.hash)
		p.await("a timeline", `document.querySelector(".timeline canvas")?.width > 300`)
		p.settle()
		p.focus(`document.querySelector(".timeline")`)
		p.do("move and zoom", chromedp.KeyEvent(kb.ArrowLeft+kb.ArrowLeft+kb.ArrowLeft+"+"))
		p.await("the address has the range", page.address+`.test(location.hash)`)
		p.settle()
		address, picture := value[string](p, `location.hash`), value[string](p, pictureOfTimeline)
		same := func(after string) {
			t.Helper()
			p.await("the same part after "+after, `location.hash === `+quote(address)+` && `+pictureOfTimeline+` === `+quote(picture))
		}
		p.do("reload", chromedp.Reload())
		same("a reload")
		p.visit("#/nodes")
		p.shows("Changes of nodes")
		value[bool](p, `history.back(), true`)
		same("going back")
		p.do("open the link", chromedp.Navigate("about:blank"), chromedp.Navigate(w.url+address))
		same("opening the link")
		p.focus(`document.querySelector(".timeline")`)
		p.do("move on", chromedp.KeyEvent(kb.ArrowLeft))
		p.await("the address follows", `location.hash !== `+quote(address))
	}
	value[bool](p, `[...document.querySelectorAll("main button")].find((b) => b.innerText === "Range").click(), true`)
	p.await("the whole range has no times", `location.hash === "#/timeline?range=86400"`)
	for _, wrong := range []string{"#/role/scheduler?span=x&end=y", "#/role/scheduler?span=-1&end=9999999-01-01", "#/role/scheduler?span=1e99", "#/timeline?from=2026-01-02&to=2026-01-01", "#/timeline?from=x&to=999999-01-01"} {
		p.visit(wrong)
		p.await("a timeline at "+wrong, `location.hash === `+quote(wrong)+` && document.querySelector(".timeline canvas")?.width > 300`)
	}
	p.visit("#/node/{api-1}")
	p.await("the roles", `document.querySelectorAll(".list .row").length > 0`)
	value[bool](p, `document.querySelector(".list .titles button").click(), true`)
	p.await("the order is in the address", `location.hash.endsWith("?down=1")`)
}
