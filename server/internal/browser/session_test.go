package browser

import (
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestEndedSessionAsksForToken: when the session of an open page has ended, the page shows that,
// asks for the token, and continues with it.
func TestEndedSessionAsksForToken(t *testing.T) {
	authentication := withToken(t)
	known := authentication.Token
	var valid atomic.Bool
	valid.Store(true)
	authentication.Required = true
	authentication.Token = func(token string) (dashboard.User, bool) {
		user, ok := known(token)
		return user, ok && valid.Load()
	}
	w := newWorld(t, dashboard.Config{Authentication: authentication}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("")
	p.do("log in", chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"))
	p.await("it is live", isLive+` && `+row("scheduler")+`?.includes("api-1")`)
	valid.Store(false)
	w.web.CloseClientConnections()
	p.shows("Your session has ended.")
	valid.Store(true)
	p.do("log in again", chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"))
	p.await("it is live again", isLive+` && `+row("scheduler")+`?.includes("api-1")`)
	p.forgive("401")
	p.forgive("ERR_")
}

// TestPageCatchesUpAfterRestart: a page that stays open while the dashboard starts again says that it
// hears nothing, catches up, and can act.
func TestPageCatchesUpAfterRestart(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, func(w *world) { w.user = "anna" })
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "scheduler")
	w.leads(first, "scheduler")
	p := w.open("#/role/scheduler")
	p.await("api-1 leads", isLive+` && document.querySelector(".figures")?.innerText.includes("api-1")`)
	// A user acts before the page has found out that the dashboard is another one.
	value[bool](p, `(() => {
		const ask = window.fetch;
		let acted;
		const action = new Promise((done) => { acted = done; });
		window.notLoadedAgain = true;
		window.fetch = async (url, options) => {
			if (url === "api/session") await action;
			const answer = await ask(url, options);
			if (options?.method === "POST") acted();
			return answer;
		};
		return true;
	})()`)
	w.down.Store(true)
	w.web.CloseClientConnections()
	p.shows("No update from the dashboard since")
	if level := value[string](p, `document.getElementById("health").className`); level != "health warning" {
		t.Errorf("the health is shown as %q", level)
	}
	w.restart()
	second := w.node(w.backend, "api-2", tenure.Config{})
	w.campaign(second, "scheduler")
	w.down.Store(false)
	p.await("it is live again", isLive+` && !document.body.innerText.includes("Nothing was heard")`)
	const stepDown = `button[data-action="step_down scheduler"]`
	p.do("step down", chromedp.WaitVisible(stepDown), chromedp.Click(stepDown), chromedp.WaitVisible("dialog"), chromedp.Click("dialog .primary"))
	p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("api-2\u2069 leads now")`)
	if !value[bool](p, `window.notLoadedAgain === true`) {
		t.Error("the page was loaded again")
	}
	p.forgive("503")
	p.forgive("403")
	p.forgive("ERR_")
}
