package browser

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestPageRequiresLogin: where a login is required, a user sees nothing before it, gets an
// error for a wrong token, and sees everything with the right one.
func TestPageRequiresLogin(t *testing.T) {
	authentication := withToken(t)
	authentication.Required = true
	w := newWorld(t, dashboard.Config{Authentication: authentication, Alerts: someAlerts}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("#/alerts")
	p.do("a wrong token", chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", "wrong\r"))
	p.shows("That token is not valid.")
	if text := value[string](p, "document.body.innerText"); len(text) > 300 {
		t.Errorf("something is shown without a login: %s", text)
	}
	p.do("the token", chromedp.SendKeys("#token", token+"\r"))
	p.shows("no_scheduler_leader")
	p.shows("Log out anna")
	p.await("it is live", isLive)
	p.visit("#/")
	p.await("api-1 leads", row("scheduler")+`?.includes("api-1")`)
	p.do("log out", chromedp.Click("#who button"), chromedp.WaitVisible("#token")) // the page is loaded again
	p.forgive("401")
}
