package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// TestStepDownWorksByMouseAndKeyboard: by mouse and by keyboard, asked once, with its outcome.
func TestStepDownWorksByMouseAndKeyboard(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "scheduler")
	w.leads(first, "scheduler")
	second := w.node(w.backend, "api-2", tenure.Config{})
	w.campaign(second, "scheduler")

	p := w.open("")
	p.shows("scheduler")
	p.visit("#/role/scheduler")
	p.shows("Who led when")
	if value[int](p, `[...document.querySelectorAll("main button")].filter((b) => /step down/i.test(b.innerText)).length`) != 0 {
		t.Error("no user is logged in, and there is a button to act")
	}
	p.logIn()
	p.visit("#/role/scheduler")
	const stepDown = `button[data-action="step_down scheduler"]`
	p.await("api-1 leads", `document.querySelector(".figures")?.innerText.includes("api-1")`)

	// By mouse.
	p.do("click", chromedp.WaitVisible(stepDown), chromedp.Click(stepDown), chromedp.WaitVisible("dialog"))
	p.await("the dialog asks", `document.querySelector("dialog").innerText.includes("Step down?") && document.querySelector("dialog").contains(document.activeElement)`)
	p.do("cancel", chromedp.KeyEvent(kb.Escape))
	p.await("the dialog is gone and the focus is where it was", `!document.querySelector("dialog") && document.activeElement.matches('`+stepDown+`')`)
	w.leads(first, "scheduler")
	p.do("click again", chromedp.Click(stepDown), chromedp.WaitVisible("dialog"), chromedp.Click("dialog .primary"))
	p.await("the outcome", `document.querySelector("dialog .answer").innerText.match(/api-2\u2069 leads now, in term \d+, after [\d.]+ m?s \(without a leader [\d.]+ [mµ]s\)/)`)
	w.leads(second, "scheduler")
	p.do("close", chromedp.Click("dialog .buttons button"))
	p.await("api-2 is shown", `!document.querySelector("dialog") && document.querySelector(".figures").innerText.includes("api-2")`)
	p.shows("by anna")

	// However often it is pressed, one thing is asked, also where answers are late.
	value[bool](p, `(() => {
		const ask = window.fetch;
		let asked = 0;
		const late = [];
		window.late = () => { window.fetch = ask; late.forEach((release) => release()); };
		window.fetch = async (url, options) => {
			const held = String(url).startsWith("api/nodes?") && ++asked < 3;
			const answer = await ask(url, options);
			if (held) await new Promise((release) => late.push(release));
			return answer;
		};
		return true;
	})()`)
	value[bool](p, `[1, 2, 3].forEach(() => document.querySelector('button[data-action="hand_over scheduler"]').click()), true`)
	p.do("hand over", chromedp.WaitVisible("dialog select"))
	if dialogs := value[int](p, `document.querySelectorAll("dialog").length`); dialogs != 1 {
		t.Errorf("%d dialogs are open", dialogs)
	}
	p.await("each node has its state", `document.querySelector("dialog option").innerText.match(/^api-1: active, led it before, leads 0, load \d+ %/)`)
	p.do("cancel", chromedp.KeyEvent(kb.Escape))
	value[bool](p, `(window.late(), new Promise((done) => setTimeout(() => done(true))))`)
	if dialogs := value[int](p, `document.querySelectorAll("dialog").length`); dialogs != 0 {
		t.Error("a dialog opened for which no page was waiting")
	}

	// By keyboard: from the top of the page, with Tab and Enter alone.
	value[bool](p, `document.activeElement.blur(), scrollTo(0, 0), true`)
	for range 60 {
		p.do("tab", chromedp.KeyEvent(kb.Tab))
		if value[bool](p, `document.activeElement.matches('`+stepDown+`')`) {
			break
		}
	}
	if !value[bool](p, `document.activeElement.matches('`+stepDown+`:focus-visible')`) {
		t.Fatal("the button cannot be reached by Tab")
	}
	p.do("enter", chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog"))
	for range 4 { // the focus stays within
		p.do("tab", chromedp.KeyEvent(kb.Tab))
		if !value[bool](p, `document.querySelector("dialog").contains(document.activeElement) || document.activeElement === document.body`) {
			t.Errorf("the focus left the dialog")
		}
	}
	p.focus(`document.querySelector("dialog .primary")`)
	p.do("enter", chromedp.KeyEvent(kb.Enter))
	p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("api-1\u2069 leads now")`)
	w.leads(first, "scheduler")
	p.await("it is announced", `document.getElementById("announcements").innerText.includes("leads now")`)
	p.do("close", chromedp.KeyEvent(kb.Enter))
	p.await("the dialog is gone", `!document.querySelector("dialog")`)
}

// TestConfirmedStepDownSparesNextLeader: the dialog names a leader. If another node leads when the
// user confirms, that node's term does not end.
func TestConfirmedStepDownSparesNextLeader(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "scheduler")
	w.leads(first, "scheduler")
	second := w.node(w.backend, "api-2", tenure.Config{})
	w.campaign(second, "scheduler")
	third := w.node(w.backend, "api-3", tenure.Config{})
	w.campaign(third, "scheduler")

	p := w.open("")
	p.logIn()
	p.visit("#/role/scheduler")
	shown := `document.querySelector(".figures")?.innerText.includes("%s")`
	for _, c := range []struct {
		action string
		leads  string
		next   *tenure.Node
	}{{"step_down", "api-1", second}, {"hand_over", "api-2", third}} {
		button := `button[data-action="` + c.action + ` scheduler"]`
		p.await(c.leads+" leads", fmt.Sprintf(shown, c.leads))
		p.do("ask", chromedp.WaitVisible(button), chromedp.Click(button), chromedp.WaitVisible("dialog"))
		if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: "scheduler", Target: c.next.ID()}); err != nil {
			t.Fatal(err)
		}
		w.leads(c.next, "scheduler")
		p.await("the next leader is shown", fmt.Sprintf(shown, c.next.Name()))
		p.do("confirm", chromedp.Click("dialog .primary"))
		p.await("the answer", `document.querySelector("dialog .answer").matches(".is-critical, .is-good, .is-warning")`)
		if text := value[string](p, `document.querySelector("dialog .answer").innerText`); !strings.Contains(text, "is over") {
			t.Errorf("%s: %s", c.action, text)
		}
		w.leads(c.next, "scheduler")
		p.do("close", chromedp.Click("dialog .buttons button"))
	}
	p.forgive("409")
}

// TestHostileNamesAreShownAsText: whatever nodes and roles are called is shown as text.
func TestHostileNamesAreShownAsText(t *testing.T) {
	w := newWorld(t, dashboard.Config{Alerts: func(ctx context.Context) ([]dashboard.Alert, error) {
		alerts, err := someAlerts(ctx)
		alerts[0].Name, alerts[1].Name, alerts[1].Summary = strings.Repeat("🦊", 200), "<b>firing</b>", strings.Repeat("🦊", 200)
		return append(alerts, dashboard.Alert{Name: "no_scheduler_leader", State: "pending"}), err
	}}, nil)
	names := []string{`<img src=x onerror=document.title='broken'>`, `<script>document.title='broken'</script>`, "\u202eright to left\u05d0", strings.Repeat("🦊", 60), `"><b>x`, "a/b?c#d%2f", "a\u200bb", "\u2066"}
	node := w.node(w.backend, names[0], tenure.Config{})
	w.campaign(node, names...)
	for _, name := range names {
		w.leads(node, name)
	}
	// Longer than a node may give a role: by an operator who writes the tables.
	long := strings.Repeat("🦊", 200)
	w.exec(`INSERT INTO {terms} (role, term, lock_key, node_id, node_name, incarnation, lease_ms, acquired_at, vacant_ms)
		SELECT $1, 2, 'long', node_id, $1, incarnation, lease_ms, acquired_at, 7 FROM {terms} LIMIT 1`, long)
	w.exec(`INSERT INTO {history} (role, term, node_id, node_name, incarnation, acquired_at, ended_at, end_reason, ended_by)
		SELECT role, 1, node_id, $1, incarnation, acquired_at - interval '1 minute', acquired_at - interval '7 ms', 'crashed', $1 FROM {terms} WHERE role = $1`, long)
	w.exec(`INSERT INTO {node_history} (at, node_id, node_name, incarnation, status, previous, changed_by)
		SELECT clock_timestamp(), node_id, $1, incarnation, 'draining', 'active', $1 FROM {terms} WHERE role = $1`, long)
	for _, name := range []string{names[0], long} {
		w.exec(`INSERT INTO {processors} (name, kind, role, last_error, errors) VALUES ($1, $1, $1, $1, 1)`, name)
		w.exec(`INSERT INTO {schedules} (name, role, expression, timezone) VALUES ($1, $1, $1, $1)`, name)
	}
	w.exec(`UPDATE {nodes} SET hostname = $1, ip_address = $1, version = $1, labels = jsonb_build_object($1::text, $1::text)`, names[0])
	names = append(names, long)
	p := w.open("")
	p.await("all roles are shown", fmt.Sprintf(`document.querySelectorAll(".list .row a[href^='#/role/']").length === %d`, len(names)))
	for _, shown := range everyPage {
		switch shown.name {
		case "role":
			continue // theirs follow
		case "node":
			shown.hash = "#/node/" + node.ID().String()
		case "schedule", "processor":
			shown.hash = "#/" + shown.name + "/" + url.PathEscape(names[0])
		}
		p.visit(shown.hash)
		p.settle()
		if value[bool](p, `document.title === "broken" || document.querySelector("main img, main script, main b b, main a b") !== null`) {
			t.Errorf("a name became markup on %s", shown.hash)
		}
		if wide := value[int](p, `document.documentElement.scrollWidth - 1360`); wide > 0 {
			t.Errorf("%s is %d pixels wider than the window", shown.hash, wide)
		}
	}
	for _, name := range names {
		name = strings.NewReplacer("\u202e", "⟨U+202E⟩", "\u200b", "⟨U+200B⟩", "\u2066", "⟨U+2066⟩").Replace(name) // an invisible character is shown by its number
		p.visit("#/")
		p.await("the link to "+name, `[...document.querySelectorAll(".list a")].some((a) => a.textContent === `+quote(name)+`)`)
		value[bool](p, `[...document.querySelectorAll(".list a")].find((a) => a.textContent === `+quote(name)+`).click(), true`)
		p.await("the page of "+name, `document.querySelector("h1").textContent === `+quote(name)+` && document.querySelector(".figures") !== null`)
	}
}
