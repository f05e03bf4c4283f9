package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// everyPage are the pages, by the name of their picture.
var everyPage = []struct{ name, hash, shows string }{
	{"overview", "#/", "Latest events"},
	{"role", "#/role/scheduler", "Who led when"},
	{"nodes", "#/nodes", "Changes of nodes"},
	{"node", "#/node/{api-1}", "History"},
	{"events", "#/events", "leads tenant-"},
	{"incident", "#/incident/latest", "Evidence"},
	{"failovers", "#/failovers", "Time without a leader"},
	{"work", "#/work", "Processors"},
	{"schedule", "#/schedule/nightly-report", "exit status 3"},
	{"processor", "#/processor/webhooks", "Replay all"},
	{"timeline", "#/timeline", "Who led which role"},
	{"metrics", "#/metrics", "busiest node"},
	{"audit", "#/audit", "step down"},
	{"unknown", "#/nothing", "no such page"},
	{"alerts", "#/alerts", "no_scheduler_leader"},
}

// TestImagesAreWritten writes what the pages look like, for the documentation.
func TestImagesAreWritten(t *testing.T) {
	if *images == "" {
		t.Log("no folder was given with -images: nothing is written")
		return
	}
	if err := os.MkdirAll(*images, 0o755); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, dashboard.Config{Title: "billing", Alerts: someAlerts, Authentication: withToken(t)}, seed)
	p := w.open("")
	p.logIn()
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		for _, shown := range everyPage {
			p.visit(shown.hash)
			p.shows(shown.shows)
			p.settle()
			p.writeScreenshot(shown.name + "-" + theme)
		}
		p.do("phone", chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
		p.visit("#/")
		p.shows("Latest events")
		p.settle()
		p.writeScreenshot("phone-" + theme)
		p.do("desk", chromedp.EmulateViewport(1360, 900))
	}
}

// settle waits until nothing has been drawn anew for a moment.
func (p *page) settle() {
	p.Helper()
	value[bool](p, `new Promise((done) => {
		let timer = setTimeout(() => done(true), 250);
		const observer = new MutationObserver((all) => {
			if (all.every((m) => m.target.closest?.(".health, nav"))) return;
			clearTimeout(timer);
			timer = setTimeout(() => { observer.disconnect(); done(true); }, 250);
		});
		observer.observe(document.getElementById("main"), { childList: true, subtree: true });
		setTimeout(() => done(true), 2000);
	})`)
}

func (p *page) writeScreenshot(name string) {
	p.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.Fatal(err)
	}
	if err := os.MkdirAll(*images, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*images, name+".png"), png, 0o644); err != nil {
		p.Fatal(err)
	}
}
