package browser

import (
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// TestPageWithoutItsScriptsSaysSo: if the browser cannot load one of the scripts, the page says what is
// wrong and what to do after a few seconds, and not before. A page whose scripts run does not say it.
func TestPageWithoutItsScriptsSaysSo(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	p := w.open("")
	p.await("the scripts run", `document.getElementById("not-loaded") === null && !document.body.innerText.includes("Loading…")`)
	for what, blocked := range map[string]string{"the entry point": "app.js", "one of those that it imports": "lanes.js"} {
		p.do("block "+what, command(network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true}),
			command(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: w.url + "assets/" + blocked, Block: true}}}),
			chromedp.Navigate(w.url+"?"+blocked))
		const notice = `document.getElementById("not-loaded")`
		p.await("the text waits", `document.readyState === "complete" && document.body.innerText.includes("Loading…") && `+notice+` && !`+notice+`.checkVisibility({ visibilityProperty: true })`)
		if delay := value[float64](p, notice+`.getAnimations()[0].effect.getComputedTiming().endTime`); delay < 3_000 || delay > 15_000 {
			t.Errorf("%s: the text appears after %v ms", what, delay)
		}
		value[bool](p, notice+`.getAnimations()[0].finish(), true`) // as after that time
		p.await("the text is visible", notice+`.checkVisibility({ visibilityProperty: true }) && `+notice+`.getBoundingClientRect().bottom < innerHeight && `+
			`/could not load the scripts.*Reload.*assets\/app\.js/.test(`+notice+`.innerText)`)
		if *images != "" {
			p.writeScreenshot("not-loaded")
		}
		p.forgive("ERR_BLOCKED_BY_CLIENT")
	}
}
