package browser

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/faultwire"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestSinceStaysWhilePageReconnects: the page states since when it has heard nothing, and attempts
// to connect again do not change that time.
func TestSinceStaysWhilePageReconnects(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("")
	p.await("it is live", isLive)
	value[bool](p, `import("./assets/live.js").then(({ live }) => {
		window.retries = 0;
		live.addEventListener("retry", () => { window.retries++; });
		return true;
	})`)
	const since = `document.getElementById("health").innerText.match(/since (\S+):/)?.[1]`
	w.down.Store(true)
	w.web.CloseClientConnections()
	p.shows("No update from the dashboard since")
	first := value[string](p, since)
	p.await("three further attempts", `window.retries > 5`)
	if later := value[string](p, since); later != first {
		t.Errorf("nothing was heard since %s, and after reconnecting since %s", first, later)
	}
	w.down.Store(false)
	p.await("it is live again", isLive)
	p.forgive("503")
	p.forgive("ERR_")
}

// TestUnreadableDatabaseLeavesNothingGreen: while the database does not answer, every state on the
// page has its age, and the page does not show how much of a lease is left.
func TestUnreadableDatabaseLeavesNothingGreen(t *testing.T) {
	var stall, resume func(...faultwire.Direction)
	w := newWorld(t, dashboard.Config{Alerts: someAlerts}, func(w *world) {
		wire, backend := w.wired()
		w.backend, stall, resume = backend, wire.Stall, wire.Resume
	})
	for _, name := range []string{"api-1", "api-2"} {
		w.campaign(w.node(w.Installation.Backend, name, tenure.Config{}), "scheduler")
	}
	p := w.open("")
	p.await("a node leads", row("scheduler")+`?.includes("led")`)
	p.await("it is live", isLive)
	const greens = `[...document.querySelectorAll("main .is-good, #connection .is-good, #health.good")].filter((e) => e.checkVisibility() && !e.closest(".entries")).map((e) => e.innerText)`
	p.await("the rest of the lease is shown", row("scheduler")+`?.match(/\d\.\d s/)`)
	stall()
	p.await("the database is reported", `document.getElementById("connection").innerText.match(/Database down\s+[\d.]+ s/)`)
	p.shows("The database cannot be read since")
	p.shows("1 role stands still if its node cannot reach it either.")
	p.await("the role's state has its age", row("scheduler")+`?.match(/led\s*as of [\d.]+ s ago/)`)
	p.await("no rest of a lease is shown", row("scheduler")+`?.match(/–\s*$/)`)
	p.await("figures have their age", `document.querySelector(".figures dt").innerText.match(/^Roles led, as of [\d.]+ s ago/)`)
	p.picture("database-down")
	for _, hash := range []string{"#/", "#/nodes", "#/work", "#/alerts", "#/role/scheduler"} {
		p.visit(hash)
		p.settle()
		if found := value[[]string](p, greens); len(found) > 0 {
			t.Errorf("%s shows in green: %q", hash, found)
		}
	}
	resume()
	p.await("it is live again", isLive+` && !document.documentElement.hasAttribute("data-stale") && !document.body.innerText.includes("as of")`)
}

// TestUnreadablePartsLeaveNothingGreen: while processors and alerts cannot be read, but nodes can,
// their states have their age.
func TestUnreadablePartsLeaveNothingGreen(t *testing.T) {
	var broken atomic.Bool
	w := newWorld(t, dashboard.Config{Alerts: func(context.Context) ([]dashboard.Alert, error) {
		if broken.Load() {
			return nil, errors.New("it does not answer")
		}
		return []dashboard.Alert{{Name: "down", State: "inactive"}}, nil
	}}, nil)
	w.exec(`INSERT INTO {processors} (name, kind, role) VALUES ('mails', 'outbox', 'mails')`)
	for _, name := range []string{"api-1", "api-2"} {
		w.campaign(w.node(w.backend, name, tenure.Config{}), "scheduler")
	}
	p := w.open("")
	p.await("it is live", isLive)
	for _, hash := range []string{"#/work", "#/alerts"} {
		p.visit(hash)
		p.await("the states have no age on "+hash, `document.querySelector("main table") && !document.querySelector("main").innerText.includes("as of")`)
	}
	broken.Store(true)
	w.exec(`ALTER TABLE {processors} RENAME TO elsewhere`)
	for _, hash := range []string{"#/work", "#/alerts"} {
		p.visit(hash)
		p.await("the states have their age on "+hash, `document.querySelector("main table").innerText.match(/as of [\d.]+ s ago/)`)
		if green := value[int](p, `document.querySelectorAll("main .is-good").length`); green > 0 {
			t.Errorf("%s shows %d states in green", hash, green)
		}
	}
	broken.Store(false)
	w.exec(`ALTER TABLE ` + w.schema + `.elsewhere RENAME TO tenure_processors`)
	p.await("the states have no age", `!document.querySelector("main").innerText.includes("as of")`)
}
