package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// TestStatesOfRetentionAreDrawn: the page of work has a row for each kind of old rows with what is wrong.
// The banner names the worst.
func TestStatesOfRetentionAreDrawn(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, func(w *world) {
		// Set by hand: packages retention and cron test that leaders write these columns.
		w.exec(`INSERT INTO {rollup_states} (kind, keep_ms, interval_ms, swept_at) VALUES ('terms', 86400000, 60000, now())`)
		w.exec(`INSERT INTO {rollup_states} (kind, keep_ms, interval_ms, errors, failing_since, last_error)
			VALUES ('dead letters', 86400000, 60000, 4, now() - interval '1 hour', 'permission denied for table')`)
		w.exec(`INSERT INTO {rollup_states} (kind, keep_ms, interval_ms) VALUES ('changes by hand', 3600000, 60000)`)
		w.exec(`INSERT INTO {changes} (at, changed_by, kind, name, action) VALUES (now() - interval '5 hours', 'ann', 'role', 'billing', 'retire')`)
	})
	p := w.open("#/work")
	row := func(name string) string {
		return `[...document.querySelectorAll("tr")].find((row) => row.innerText.includes(` + quote(name) + `))`
	}
	for name, text := range map[string]string{"terms": "on time", "dead letters": "failed 4 times in a row", "changes by hand": "late by"} {
		p.await("the state of "+name, row(name)+`?.innerText.includes(`+quote(text)+`)`)
	}
	p.await("the error is shown", row("dead letters")+`.innerText.includes("permission denied for table")`)
	p.await("the banner names it", `document.getElementById("health").matches(".warning") && document.getElementById("health").innerText.includes("cannot be removed")`)
	if *images != "" {
		p.settle()
		p.writeScreenshot("retention")
	}
}

// TestStatesOfSchedulesAreDrawn: a schedule that cannot run, is ahead of the clock, is overdue or has a
// leader that cannot work has its state and its error on the page of work. The banner names a critical one
// first, and counts the others without a claim that they are jobs or have failed.
func TestStatesOfSchedulesAreDrawn(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, func(w *world) {
		// Set by hand: package cron tests that leaders write these columns.
		w.exec(`INSERT INTO {schedules} (name, role, expression, timezone, handled_until, errors, failing_since, last_error) VALUES
			('ahead', 'cron', '* * * * *', 'UTC', now() + interval '3 hours', 0, NULL, ''),
			('overdue', 'cron', '* * * * *', 'UTC', now() - interval '10 minutes', 0, NULL, ''),
			('misled', 'cron', '30 2 1 1 *', 'UTC', now(), 4, now() - interval '1 hour', 'permission denied for table runs')`)
		w.exec(`INSERT INTO {rollup_states} (kind, keep_ms, interval_ms, errors, failing_since, last_error)
			VALUES ('dead letters', 86400000, 60000, 4, now() - interval '1 hour', 'permission denied for table')`)
	})
	p := w.open("#/work")
	row := func(name string) string {
		return `[...document.querySelectorAll("tr")].find((row) => row.innerText.includes(` + quote(name) + `))`
	}
	for name, text := range map[string]string{"ahead": "waits 2 h 5", "overdue": "overdue for", "misled": "its leader cannot work"} {
		p.await("the state of "+name, row(name)+`?.innerText.includes(`+quote(text)+`)`)
	}
	first := func(name string) string {
		return `[...document.querySelectorAll(".panel")][1].querySelector("tbody tr").innerText.includes(` + quote(name) + `)`
	}
	p.await("the worst is first", first("misled"))
	p.await("the error is shown", row("misled")+`.innerText.includes("permission denied for table runs")`)
	p.await("the banner names the critical one", `document.getElementById("health").matches(".critical") && document.getElementById("health").innerText.match(/misled\S* has a leader that cannot work: \S*permission denied for table runs/)`)
	p.focus(`document.querySelector('table a[href="#/schedule/misled"]')`)
	w.exec(`UPDATE {schedules} SET errors = 0, failing_since = NULL, last_error = ''`)
	p.await("the banner counts the others", `document.getElementById("health").matches(".warning") && document.getElementById("health").innerText.match(/ahead\S* waits for the clock of the database\. 2 more problems in Work\./)`)
	p.await("a row that the user points at keeps its place", first("misled")+` && `+row("misled")+`.innerText.includes("not loaded")`)
	if *images != "" {
		p.settle()
		p.writeScreenshot("schedules")
	}
}

// TestTermsAreFound: the search of a role's page finds terms by their leader, the reason of their end and
// the requester.
func TestTermsAreFound(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open("#/role/scheduler")
	const total = `Number(document.querySelector(".list")?.getAttribute("aria-rowcount")) - 1`
	p.await("all terms", total+` > 20`)
	all := value[int](p, total)
	p.focus(`document.querySelector('main input[type="search"]')`)
	p.do("search", chromedp.KeyEvent("crashed"))
	p.await("the terms that ended so", `document.querySelectorAll(".list .row").length > 1 && [...document.querySelectorAll(".list .row")].every((row) => row.innerText.includes("crashed")) && `+total+` < `+fmt.Sprint(all))
	p.visit("#/role/scheduler?search=nothing-like-it")
	p.shows("No term matches.")
}
