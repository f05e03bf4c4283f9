package browser

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/eventstore"
	"github.com/exactly-one/tenure/internal/postgrestest"
	"github.com/exactly-one/tenure/processor"
	"github.com/exactly-one/tenure/retry"
	"github.com/exactly-one/tenure/server/dashboard"
)

// press opens the dialog of a button with the keyboard, types into its field if there is one, and
// confirms.
func (p *page) press(action, typed, answer string) {
	p.Helper()
	button := `[...document.querySelectorAll("[data-action]")].find((b) => b.dataset.action === ` + quote(action) + `)`
	p.await("the button "+action, button+" !== undefined")
	p.focus(button)
	p.do("open the dialog", chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog"))
	if typed != "" {
		p.await("the field has the focus", `document.activeElement.matches("dialog input")`)
		p.do("type", chromedp.KeyEvent(typed+kb.Enter))
	} else {
		p.do("confirm", chromedp.KeyEvent(kb.Tab+kb.Enter))
	}
	p.await("the outcome", `document.querySelector("dialog .answer").innerText.includes("`+answer+`")`)
	p.do("close", chromedp.KeyEvent(kb.Enter))
	p.await("the dialog is gone", `document.querySelector("dialog") === null`)
}

// TestStoppedProcessorIsRemediedWithTheKeyboard: the page offers what the banner advises for a processor
// that has stopped. With the keyboard alone, a user skips the event, and rewinds the processor.
func TestStoppedProcessorIsRemediedWithTheKeyboard(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	store := eventstore.New(w.backend, eventstore.Config{})
	node := w.node(w.backend, "api-1", tenure.Config{})
	group, err := processor.NewGroup(node, tenure.NamedRole("views"), w.pool, processor.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = group.Add(processor.Config{
		Name: "webhooks", Kind: "outbox", Log: store.Log(), MaxAttempts: 3, Retry: retry.FixedInterval{Interval: 20 * time.Millisecond},
		Publish: func(_ context.Context, _ *tenure.Term, batch []processor.Event) (int, error) {
			for i, event := range batch {
				if event.Type == "refused" {
					return i, errors.New("the receiver answered 400")
				}
			}
			return len(batch), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Run(t, group.Run)
	if err := store.Append(t.Context(), w.pool, eventstore.NewEvent{Type: "sent", Data: 1}, eventstore.NewEvent{Type: "refused", Data: 2}, eventstore.NewEvent{Type: "sent", Data: 3}); err != nil {
		t.Fatal(err)
	}
	p := w.open("")
	p.logIn()
	p.await("the banner advises what to do", `document.getElementById("incident").innerText.includes("retry, skip or rewind")`)
	p.visit("#/processor/webhooks")
	p.press("skip webhooks", "", "is skipped")
	processed := func(want int64) {
		t.Helper()
		w.Await("events are handled", func() bool {
			return postgrestest.Value[int64](w.Installation, "SELECT coalesce(sum(processed), 0)::bigint FROM {processors} WHERE status = 'active'") >= want
		})
	}
	processed(2)
	p.press("rewind webhooks", "0:0", "continues after the start of the log")
	p.await("it has stopped again", `document.getElementById("health").innerText.includes("needs an operator")`)
	p.visit("#/audit")
	p.shows("skip processor")
	p.shows("rewind processor")
}

// TestSilenceEndsOnThePage: an alert whose silence was made on the page has a button that ends it,
// also while the alert does not fire.
func TestSilenceEndsOnThePage(t *testing.T) {
	var (
		mu  sync.Mutex
		got []dashboard.AlertRequest
	)
	until := time.Now().Add(time.Hour)
	w := newWorld(t, dashboard.Config{
		Authentication: withToken(t),
		Alerts: func(context.Context) ([]dashboard.Alert, error) {
			return []dashboard.Alert{
				{Name: "down", State: "firing", Severity: "critical", SilencedBy: "anna", SilencedUntil: until, Labels: map[string]string{"alertname": "down", "role": "r"}},
				{Name: "quiet", State: "inactive", Severity: "info", SilencedBy: "anna", SilencedUntil: until},
				{Name: "mistyped", State: "inactive", Severity: "info", Problem: "there is no metric tenure_ledders; did you mean tenure_leaders?"},
			}, nil
		},
		HandleAlert: func(_ context.Context, r dashboard.AlertRequest) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, r)
			return nil
		},
	}, nil)
	p := w.open("")
	p.logIn()
	p.await("no red badge", `document.querySelector("nav .count") === null`)
	p.visit("#/alerts")
	p.shows("firing, silenced")
	state := `[...document.querySelectorAll("tr")].find((row) => row.innerText.includes("mistyped"))`
	p.await("an alert that cannot be evaluated is not green", state+`.innerText.includes("not evaluated") && `+state+`.querySelector(".is-good") === null && `+state+`.innerText.includes("there is no metric tenure_ledders")`)
	p.press(`unsilence down {"role":"r"}`, "", "is no longer silenced")
	p.press("unsilence quiet {}", "", "is no longer silenced")
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || !got[0].Unsilence || got[0].Name != "down" || got[0].Labels["role"] != "r" || !got[1].Unsilence || got[1].Name != "quiet" || len(got[1].Labels) != 0 {
		t.Errorf("the requests are %+v", got)
	}
}

// TestDeadNodesComeFirstAndAreForgotten: a dead node is first in the panel of the first page and in the
// list, its time up has ended, and with the keyboard a user forgets it.
func TestDeadNodesComeFirstAndAreForgotten(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	for _, name := range []string{"a-1", "a-2", "a-3"} {
		w.node(w.backend, name, tenure.Config{})
	}
	process := w.process("z-dead", 10*time.Second)
	w.AwaitWatched(w.member("z-dead").ID)
	process.Kill()
	p := w.open("")
	p.logIn()
	p.await("it is first in the panel", `document.querySelector(".nodes tbody tr")?.innerText.match(/z-dead\s+dead/)`)
	p.visit("#/nodes")
	p.await("it is first in the list", `document.querySelector(".list .row")?.innerText.match(/z-dead[^]*dead/)`)
	id := w.member("z-dead").ID.String()
	up := `document.querySelector(".list .row").children[6].innerText`
	first := value[string](p, up)
	value[bool](p, `new Promise((done) => setTimeout(() => done(true), 2500))`)
	if now := value[string](p, up); now != first {
		t.Errorf("the dead node was up for %s, and then for %s", first, now)
	}
	p.press("forget "+id, "", "The node is forgotten.")
	p.await("it is gone", `!document.querySelector(".list").innerText.includes("z-dead")`)
}

// TestStepDownDialogNamesWhoCouldTakeOver: the dialog does not promise a leader that does not exist.
func TestStepDownDialogNamesWhoCouldTakeOver(t *testing.T) {
	w := newWorld(t, dashboard.Config{Authentication: withToken(t)}, nil)
	first := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(first, "scheduler")
	w.leads(first, "scheduler")
	p := w.open("")
	p.logIn()
	p.visit("#/role/scheduler")
	says := func(text string) {
		t.Helper()
		const button = `button[data-action="step_down scheduler"]`
		p.do("open the dialog", chromedp.WaitVisible(button), chromedp.Click(button), chromedp.WaitVisible("dialog"))
		if got := value[string](p, `document.getElementById("dialog-text").innerText`); !strings.Contains(got, text) {
			t.Errorf("the dialog says %q, want %q in it", got, text)
		}
		p.do("cancel", chromedp.KeyEvent(kb.Escape))
		p.await("no dialog", `document.querySelector("dialog") === null`)
	}
	says("No other node is active")
	second := w.node(w.backend, "api-2", tenure.Config{})
	p.visit("#/nodes")
	p.shows("api-2")
	p.visit("#/role/scheduler")
	says("1 other node is active, and none of them is known to have led it before.")
	w.campaign(second, "scheduler")
	for _, next := range []*tenure.Node{second, first} {
		if err := w.backend.Request(t.Context(), tenure.Request{Kind: tenure.RequestHandOver, Role: "scheduler", Target: next.ID()}); err != nil {
			t.Fatal(err)
		}
		w.leads(next, "scheduler")
		p.await("it is shown", `document.querySelector(".figures").innerText.includes("`+next.Name()+`")`)
	}
	says("1 other node is active, and 1 of them led it before.")
}

// TestKeyAndMenuReachEveryList: the key / moves the focus to the search of each page with a list, and the
// menu has every page.
func TestKeyAndMenuReachEveryList(t *testing.T) {
	w := newWorld(t, dashboard.Config{Alerts: someAlerts}, seed)
	p := w.open("")
	p.shows("tenant-01")
	menu := value[string](p, `[...document.querySelectorAll("#pages a")].map((a) => a.firstChild.textContent).join(" ")`)
	if want := "Overview Nodes Events Failovers Timeline Work Alerts Metrics Audit"; menu != want {
		t.Errorf("the menu is %q, want %q", menu, want)
	}
	for hash, c := range map[string]struct{ typed, hides string }{
		"#/": {"tenant-01", "tenant-02"}, "#/nodes": {"nothing", "api-1"}, "#/events": {"nothing", "leads"}, "#/failovers": {"nothing", "tenant-"},
		"#/timeline": {"nothing", ""}, "#/work": {"webhooks", "nightly-report"}, "#/alerts": {"heartbeat", "frequent_failovers"}, "#/audit": {"nothing", "step down"},
	} {
		p.visit(hash)
		p.await("the page "+hash, `document.querySelector("#pages a[aria-current]").getAttribute("href") === `+quote(hash))
		if c.hides != "" {
			p.shows(c.hides)
		}
		value[bool](p, `document.activeElement.blur(), true`)
		// A key event of chromedp would write the letter also where the page has handled the key.
		p.do("press /", command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Key: "/", Code: "Slash"}))
		p.await("the search of "+hash+" has the focus", `document.activeElement.matches('main input[type="search"]') && document.activeElement.value === ""`)
		p.do("type", chromedp.KeyEvent(c.typed))
		if c.hides != "" {
			p.await(hash+" hides "+c.hides, `![...document.querySelectorAll("main .list .row, main tbody tr")].some((row) => row.innerText.includes("`+c.hides+`"))`)
		}
	}
}

// TestTimesNameTheirZone: the page names the zone of its times, and changes it to UTC, also in charts.
func TestTimesNameTheirZone(t *testing.T) {
	w := newWorld(t, dashboard.Config{}, seed)
	p := w.open(emptyPage)
	p.do("a zone", command(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}))
	p.do("load", chromedp.Navigate(w.url))
	p.shows("tenant-01")
	p.await("the zone is named", `document.querySelector("#times button").innerText.includes("5:30")`)
	p.await("times have it", `document.querySelector(".entries time")?.title.includes("5:30")`)
	p.focus(`document.querySelector("#times button")`)
	p.do("press", chromedp.KeyEvent("\r"))
	p.await("times are UTC", `document.querySelector("#times button").innerText === "UTC" && document.querySelector(".entries time")?.title.includes("UTC")`)
}
