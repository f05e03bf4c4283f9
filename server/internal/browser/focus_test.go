package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// inOrder reports whether the rows of the first list have the order in which they
// are seen, which is the order of Tab and of screen readers.
const inOrder = `[...document.querySelectorAll(".list .row")].every((row, i, all) => i === 0 || +row.getAttribute("aria-rowindex") > +all[i - 1].getAttribute("aria-rowindex"))`

// TestFocusStaysWhileRowsMove: the focus stays on a link while rows come, go and move around it, and
// a screen reader does not announce each of many events.
func TestFocusStaysWhileRowsMove(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "middle", "scheduler")
	w.leads(first, "middle")
	w.leads(first, "scheduler")
	p := w.open("")
	p.await("both are led", row("middle")+`?.includes("api-1") && `+row("scheduler")+`?.includes("api-1")`)
	p.shows("leads middle")
	focus := func(what, link string) {
		t.Helper()
		value[bool](p, fmt.Sprintf(`(window.held = %s, window.held.focus(), document.activeElement === window.held)`, link))
		t.Log("the focus is on", what)
	}
	kept := func(what string) {
		t.Helper()
		if !value[bool](p, `window.held.isConnected && document.activeElement === window.held`) {
			t.Errorf("%s: the focus is on %s", what, value[string](p, `document.activeElement.outerHTML`))
		}
		if !value[bool](p, inOrder) {
			t.Errorf("%s: the rows are out of order", what)
		}
	}
	focus("a role", `[...document.querySelectorAll(".list a")].find((a) => a.textContent === "scheduler")`)
	lead := func(role string) { // the first term of a role causes no notification, but a new node does
		w.campaign(first, role)
		w.leads(first, role)
		w.node(w.backend, "beside "+role, tenure.Config{})
	}
	lead("early") // goes before it, when the user asks for the new order
	p.await("the new order is offered", `document.querySelector(".order").checkVisibility()`)
	kept("a role came that is not shown yet")
	if first := value[string](p, `document.querySelector(".list .row a").textContent`); first != "middle" {
		t.Errorf("the rows moved: the first is %s", first)
	}
	value[bool](p, `(document.querySelector(".order").click(), true)`)
	p.await("early is shown", `document.querySelector(".list .row a")?.textContent === "early"`)
	kept("a role came before it")

	focus("a role among the latest events", `[...document.querySelectorAll(".entries a")].find((a) => a.textContent === "middle")`)
	lead("later")
	p.shows("leads later")
	kept("another event came")

	p.visit("#/events")
	p.shows("leads later")
	value[bool](p, `(window.health = 0, new MutationObserver(() => window.health++).observe(document.getElementById("health-announcement"), { childList: true, characterData: true, subtree: true }), true)`)
	value[bool](p, `(window.announced = 0, new MutationObserver(() => window.announced++).observe(document.getElementById("announcements"), { childList: true, characterData: true, subtree: true }), true)`)
	focus("a role in an event", `[...document.querySelectorAll(".list a")].find((a) => a.textContent === "middle")`)
	const many = 6
	began := time.Now()
	for i := range many {
		w.node(w.backend, fmt.Sprintf("more-%d", i), tenure.Config{})
		p.shows(fmt.Sprintf("more-%d joined", i))
	}
	kept("many events came")
	if health := value[int](p, `window.health`); health > 2+int(time.Since(began)/(5*time.Second)) {
		t.Errorf("%d announcements of the health", health)
	}
	told, most := value[int](p, `window.announced`), 2+int(time.Since(began)/(5*time.Second)) // one every five seconds
	t.Logf("%d announcements of %d events", told, many)
	if told > most {
		t.Errorf("%d announcements of %d events; at most %d", told, many, most)
	}
}
