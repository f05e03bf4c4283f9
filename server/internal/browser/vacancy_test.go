package browser

import (
	"context"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestVacancyIsShown: while no node leads, the page says so and for how long, in words and
// in the lane of the timeline.
func TestVacancyIsShown(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("")
	p.await("api-1 leads", row("scheduler")+`?.includes("api-1")`)
	p.visit("#/role/scheduler")
	p.shows("continues")
	// The lane of vacancies is the last one above the axis.
	const red = `(() => {
		const canvas = document.querySelector(".timeline canvas"), context = canvas.getContext("2d");
		const critical = getComputedStyle(document.documentElement).getPropertyValue("--critical").trim();
		const [r, g, b] = [1, 3, 5].map((at) => parseInt(critical.slice(at, at + 2), 16));
		const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
		let found = 0;
		for (let i = 0; i < data.length; i += 4) found += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 60;
		return found;
	})()`
	if found := value[int](p, red); found != 0 {
		t.Errorf("%d pixels say that no node leads", found)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := node.Close(ctx); err != nil {
		t.Fatal(err)
	}
	p.shows("Vacant for")
	p.shows("No node leads \u2068scheduler\u2069.")
	p.shows("shut down")
	p.await("the lane of vacancies", red+" > 20")
	if value[int](p, `document.querySelectorAll("main .head button").length`) != 0 {
		t.Error("a vacant role offers a request to its leader")
	}
}

// TestCurrentTermIsShownBeforeRole: the list of terms may come before the state of its role; the
// current term is shown as current all the same.
func TestCurrentTermIsShownBeforeRole(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, "scheduler")
	w.leads(node, "scheduler")
	p := w.open("")
	p.await("api-1 leads", row("scheduler")+`?.includes("api-1")`)
	value[bool](p, `(() => {
		const ask = window.fetch;
		const held = new Promise((release) => { window.release = release; });
		window.fetch = async (url, ...rest) => {
			const answer = await ask(url, ...rest);
			if (String(url).startsWith("api/role?")) await held;
			return answer;
		};
		return true;
	})()`)
	p.visit("#/role/scheduler")
	const ending = `[...document.querySelectorAll(".list .row")].find((row) => row.innerText.includes("api-1"))?.children[4].innerText`
	p.await("the term is there", ending+` === "…"`)
	value[bool](p, `(window.release(), true)`)
	p.await("the term continues", ending+`?.includes("continues")`)
}
