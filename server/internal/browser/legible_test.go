package browser

import (
	"testing"

	"github.com/exactly-one/tenure/server/dashboard"
)

// TestNothingIsCutAtADesk: at 1360 pixels no figure, state, reason or vacancy is cut. Names may be,
// and have the whole name as a title.
func TestNothingIsCutAtADesk(t *testing.T) {
	w := newWorld(t, dashboard.Config{Alerts: someAlerts, Authentication: withToken(t)}, seed)
	w.exec(`SELECT set_config('tenure.incarnation', '1', true); UPDATE {terms} SET ended_at = now() - interval '2 hours 14 minutes', end_reason = 'lease_expired' WHERE role = 'log-compactor'`)
	p := w.open("")
	p.logIn()
	for _, shown := range everyPage {
		p.visit(shown.hash)
		p.shows(shown.shows)
		p.settle()
		for _, cut := range value[[]string](p, `[...document.querySelectorAll(".cell, .table td, .figures dd, .metered, .lines, .status")]
			.filter((e) => e.checkVisibility() && !e.querySelector(".name") && (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" || e.matches(".lines") && e.scrollHeight > e.clientHeight + 2))
			.map((e) => e.className + ": " + e.innerText)`) {
			t.Errorf("%s cuts %s", shown.name, cut)
		}
		if *images != "" {
			p.writeScreenshot("legible-" + shown.name)
		}
	}
}
