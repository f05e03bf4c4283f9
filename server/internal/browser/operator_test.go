package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/cluster"
	"github.com/exactly-one/tenure/internal/postgrestest"
)

// taskTime is how long an operator may take for a task.
const taskTime = time.Minute

// task is something that an operator does, on the page alone and in the terminal alone.
type task struct {
	name     string
	prepare  func(*desk) // makes the task necessary
	page     func(*desk) // nil: the page leaves it to the terminal
	terminal func(*desk)
	done     func(d *desk, by string) // waits for the outcome, in the database or for who logs in
}

// tasks are what operators do most.
var tasks = []task{
	{
		name: "why a role moved",
		page: func(d *desk) {
			d.see("#/role/billing", "crashed")
			d.await("the term ended with the crash", `[...document.querySelectorAll(".list .row")].some((row) => row.innerText.includes("api-1") && row.innerText.includes("crashed"))`)
			d.see("#/events?search=billing", "Crash")
			d.await("the incident has its time", `/api-1\S* crashed at (\S+ )?\d\d:\d\d:\d\d/.test(document.querySelector(".list, main").innerText)`)
		},
		terminal: func(d *desk) {
			d.says(d.run("tenure", "history", "--role", "billing", "--since", "1h"), `api-1`, `crashed`)
			d.says(d.run("tenure", "history", "--incidents", "--since", "1h"), `api-1 crashed at`, `billing`)
		},
		done: func(d *desk, _ string) {
			d.holds("the crash is recorded", "SELECT count(*) FROM {history} WHERE role = 'billing' AND node_name = 'api-1' AND end_reason = 'crashed'", 1)
		},
	},
	{
		name:     "step down",
		prepare:  func(d *desk) { d.before = d.leader("billing") },
		page:     func(d *desk) { d.press("#/role/billing", "step_down billing", "leads now") },
		terminal: func(d *desk) { d.run("tenure", "step-down", "--role", "billing") },
		done: func(d *desk, by string) {
			d.holds("the term has ended as requested", fmt.Sprintf("SELECT count(*) FROM {history} WHERE role = 'billing' AND term = %d AND end_reason = 'stepped_down' AND ended_by = '%s'", d.before.Term, by), 1)
			d.Await("another node leads", func() bool { return d.leader("billing").NodeID != d.before.NodeID })
		},
	},
	{
		name: "hand over",
		prepare: func(d *desk) {
			d.before = d.leader("billing")
			d.target = map[bool]string{true: "api-3", false: "api-2"}[d.before.NodeName == "api-2"]
		},
		page: func(d *desk) {
			d.see("#/role/billing", fmt.Sprintf("…%06d", d.before.Term%1e6)) // the page knows of the last move
			d.ask("#/role/billing", "hand_over billing")
			d.choose(d.target)
			d.confirm("leads now")
		},
		terminal: func(d *desk) { d.run("tenure", "step-down", "--role", "billing", "--to", d.target) },
		done: func(d *desk, by string) {
			d.holds("the term has ended as requested", fmt.Sprintf("SELECT count(*) FROM {history} WHERE role = 'billing' AND term = %d AND end_reason = 'handed_over' AND ended_by = '%s'", d.before.Term, by), 1)
			d.Await("the target leads", func() bool { return d.leader("billing").NodeName == d.target })
		},
	},
	{
		name: "drain and undrain",
		page: func(d *desk) {
			drain := "drain " + d.member("api-2").ID.String()
			d.press("#/nodes", drain, "drain") // it may have drained already
			d.drained("api-2")
			d.press("#/nodes", drain, "is active again")
		},
		terminal: func(d *desk) {
			d.run("tenure", "node", "drain", "api-2")
			d.drained("api-2")
			d.run("tenure", "node", "undrain", "api-2")
		},
		done: func(d *desk, by string) {
			d.Await("the node is active", func() bool { return d.member("api-2").Status == tenure.StatusActive })
			d.holds("the requester is recorded", fmt.Sprintf("SELECT count(DISTINCT status) FROM {node_history} WHERE node_name = 'api-2' AND changed_by = '%s'", by), 2)
		},
	},
	{
		name:     "rebalance",
		prepare:  func(d *desk) { d.misplace() },
		page:     func(d *desk) { d.press("#/nodes", "rebalance", "moved.") },
		terminal: func(d *desk) { d.run("tenure", "rebalance", "--yes") },
		done: func(d *desk, by string) {
			d.Await("nothing is left to move", func() bool {
				plan, err := cluster.PlanRebalance(d.screen.Context(), d.backend)
				return err == nil && len(plan.Moves) == 0 && len(plan.Nodes) == 2
			})
			d.holds("the moves have their requester", fmt.Sprintf("SELECT least(count(*), 1) FROM {history} WHERE role LIKE 'shard/%%' AND end_reason = 'handed_over' AND ended_by = '%s'", by), 1)
		},
	},
	{
		name: "silence and unsilence",
		page: func(d *desk) {
			d.ask("#/alerts", "silence too_few_nodes {}")
			d.confirm("is silenced")
			d.holds("one silence lasts", "SELECT count(*) FROM {alert_silences} WHERE until > now() AND ended_at IS NULL", 1)
			d.press("#/alerts", "unsilence too_few_nodes {}", "is no longer silenced")
		},
		terminal: func(d *desk) {
			d.run("tenure-server", "alerts", "silence", "too_few_nodes", "--for", "1h", "--comment", "maintenance")
			d.holds("one silence lasts", "SELECT count(*) FROM {alert_silences} WHERE until > now() AND ended_at IS NULL", 1)
			d.run("tenure-server", "alerts", "silences")
			d.run("tenure-server", "alerts", "unsilence", fmt.Sprint(postgrestest.Value[int64](d.Installation, "SELECT max(id) FROM {alert_silences}")))
		},
		done: func(d *desk, _ string) {
			d.holds("no silence lasts", "SELECT count(*) FROM {alert_silences} WHERE until > now() AND ended_at IS NULL", 0)
		},
	},
	{
		name:    "trigger",
		prepare: func(d *desk) { d.count = d.sum("SELECT count(*) FROM {runs} WHERE state = 'succeeded'") },
		page:    func(d *desk) { d.press("#/work", "trigger report", "has run on") },
		terminal: func(d *desk) {
			d.run("tenure", "cron", "trigger", "report")
			d.run("tenure", "cron", "history", "report")
		},
		done: func(d *desk, _ string) {
			d.holds("it has run once more", "SELECT count(*) FROM {runs} WHERE state = 'succeeded'", d.count+1)
		},
	},
	{
		name: "replay",
		prepare: func(d *desk) {
			d.refuse()
			d.count = d.sum("SELECT coalesce(sum(processed), 0)::bigint FROM {processors}")
		},
		page: func(d *desk) { d.press("#/processor/mails", "replay all", "handles 2 dead letters again") },
		terminal: func(d *desk) {
			d.says(d.run("tenure", "processor", "dead-letters", "mails"), "the receiver answered 422")
			d.run("tenure", "processor", "replay", "mails", "--all")
		},
		done: func(d *desk, _ string) {
			d.holds("no dead letter is left", "SELECT count(*) FROM {dead_letters} WHERE replayed_at IS NULL", 0)
		},
	},
	{
		// A user who acts on the page must not be able to give others access: users are in a file alone.
		name:     "add a user",
		terminal: func(d *desk) { d.addUser("berta", bertasPassword) },
		done: func(d *desk, _ string) {
			d.Await("the user may act", func() bool { return d.access("berta", bertasPassword) == "operator" })
		},
	},
	{
		name:     "rotate a password",
		terminal: func(d *desk) { d.changePassword("berta", newPassword) },
		done: func(d *desk, _ string) {
			d.Await("the new password is valid", func() bool { return d.access("berta", newPassword) == "operator" })
			if got := d.access("berta", bertasPassword); got != "" {
				d.Errorf("with the old password, the access is %q", got)
			}
		},
	},
}

// An operator does each of ten tasks in less than a minute, on the page alone and in the
// terminal alone. What the page leaves to the terminal is stated there. With -images the test
// writes pictures of all steps.
func TestOperatorDoesTenTasks(t *testing.T) {
	d := newDesk(t)
	for i, task := range tasks {
		for _, side := range []struct {
			name, by string
			act      func(*desk)
		}{{"page", "anna", task.page}, {"terminal", requester(), task.terminal}} {
			if side.act == nil {
				continue
			}
			ok := t.Run(task.name+" in the "+side.name, func(t *testing.T) {
				defer d.reportTo(t)()
				d.begin(fmt.Sprintf("operator-%02d-%s-%s", i+1, strings.ReplaceAll(task.name, " ", "-"), side.name))
				if task.prepare != nil {
					task.prepare(d)
				}
				began := time.Now()
				side.act(d)
				task.done(d, side.by)
				took := time.Since(began)
				t.Logf("it took %v", took.Round(10*time.Millisecond))
				if took > taskTime {
					t.Errorf("it took %v; an operator may take %v", took, taskTime)
				}
			})
			if !ok {
				t.FailNow() // the next task begins where this one ends
			}
		}
	}
}

// The desk has no mouse, and no script moves the focus: the page must be usable by the keyboard alone.

// mostTabs is how often an operator presses Tab to reach something.
const mostTabs = 150

// reach presses Tab, or Shift and Tab, until an element that a selector matches has the focus.
func (d *desk) reach(selector string, backwards bool) {
	d.page.Helper()
	d.await("there is "+selector, `document.querySelector(`+quote(selector)+`) !== null`)
	held := chromedp.ModifierNone
	if backwards {
		held = chromedp.ModifierShift
	}
	for range mostTabs {
		if value[bool](d.page, `document.activeElement.matches(`+quote(selector)+`)`) {
			return
		}
		d.do("tab", chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(held)))
	}
	d.page.Fatalf("%d presses of Tab do not reach %s", mostTabs, selector)
}

// turnTo opens a page from the menu, and the page of one thing from the list that has it, which is
// searched for its name.
func (d *desk) turnTo(hash string) {
	d.page.Helper()
	menu, name := hash, ""
	for list, begins := range map[string]string{"#/": "#/role/", "#/work": "#/processor/", "#/events": "#/events?search="} {
		if after, ok := strings.CutPrefix(hash, begins); ok {
			menu, name = list, after
		}
	}
	if value[string](d.page, "location.hash") == hash {
		return
	}
	link := `#pages a[href=` + quote(menu) + `]`
	d.reach(link, value[bool](d.page, `document.activeElement !== document.body`))
	d.do("open "+menu, chromedp.KeyEvent(kb.Enter))
	d.await("the page "+menu, `document.querySelector('#pages a[aria-current]')?.matches(`+quote(link)+`)`)
	if name == "" {
		return
	}
	d.await("a list to search", `document.querySelector('main input[type="search"]') !== null`)
	d.do("press /", command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Key: "/", Code: "Slash"}))
	d.await("the search has the focus", `document.activeElement.matches('input[type="search"]')`)
	d.do("search for "+name, chromedp.KeyEvent(name))
	if strings.Contains(hash, "?") {
		return
	}
	d.reach(`main a[href=`+quote(hash)+`]`, false)
	d.do("open "+hash, chromedp.KeyEvent(kb.Enter))
	d.await("the page "+hash, `location.hash === `+quote(hash))
}

// ask opens a page, and the dialog of a button.
func (d *desk) ask(hash, action string) {
	d.page.Helper()
	d.turnTo(hash)
	d.reach(`[data-action=`+quote(action)+`]`, false)
	d.picture()
	d.do("open the dialog", chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("dialog"))
	d.picture()
}

// choose types the beginning of an option into the list of the dialog, which has the focus.
func (d *desk) choose(text string) {
	d.page.Helper()
	d.await("the list has the focus", `document.activeElement.matches("dialog select")`)
	d.do("type "+text, chromedp.KeyEvent(text))
	d.await(text+" is chosen", `document.activeElement.selectedOptions[0].innerText.includes(`+quote(text)+`)`)
}

// confirm presses the button of the dialog that acts, and closes the dialog.
func (d *desk) confirm(answer string) {
	d.page.Helper()
	for range 4 {
		d.do("tab", chromedp.KeyEvent(kb.Tab))
		if value[bool](d.page, `document.activeElement.matches("dialog .primary")`) {
			break
		}
	}
	d.do("confirm", chromedp.KeyEvent(kb.Enter))
	d.await("the outcome", `document.querySelector("dialog .answer").innerText.includes(`+quote(answer)+`)`)
	d.picture()
	d.do("close", chromedp.KeyEvent(kb.Enter))
	d.await("the dialog is gone", `document.querySelector("dialog") === null`)
}

// press does what a button does.
func (d *desk) press(hash, action, answer string) {
	d.page.Helper()
	d.ask(hash, action)
	d.confirm(answer)
}

// see opens a page and waits for a text.
func (d *desk) see(hash, text string) {
	d.page.Helper()
	d.turnTo(hash)
	d.shows(text)
	d.picture()
}
