package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/exactly-one/tenure/server/dashboard"
)

// geometryWidths are the widths of the windows, in pixels: two phones, a tablet, half a screen, a
// laptop and a large screen.
var geometryWidths = []int{360, 390, 768, 1100, 1440, 1920}

// shownPage is a page, or a page with a dialog.
type shownPage struct {
	name, hash, shows string
	opens             string // the action of the button that opens a dialog
	confirms          bool   // the request of the dialog, and shows the answer
	unfolds           string // a selector of what shows more
}

func pageOf(kind, name string) string { return "#/" + kind + "/" + url.PathEscape(name) }

// brokenPages are all pages, on a cluster in which everything is broken.
var brokenPages = []shownPage{
	{name: "overview", hash: "#/", shows: "Latest events"},
	{name: "role", hash: pageOf("role", longRole), shows: "Who led when"},
	{name: "vacant-role", hash: pageOf("role", vacantRole), shows: "Who led when"},
	{name: "nodes", hash: "#/nodes", shows: "Changes of nodes"},
	{name: "node", hash: "#/node/{" + longNode + "}", shows: "History"},
	{name: "dead-node", hash: "#/node/{" + deadNode + "}", shows: "History"},
	{name: "events", hash: "#/events", shows: "requested by"},
	{name: "all-events", hash: "#/events?kind=all&search=anna", shows: "requested by"},
	{name: "crash", hash: "#/incident/{crash}", shows: "Evidence"},
	{name: "drain", hash: "#/incident/{drain}", shows: "Evidence"},
	{name: "failovers", hash: "#/failovers", shows: "Time without a leader"},
	{name: "work", hash: "#/work", shows: "Schedules"},
	{name: "schedule", hash: pageOf("schedule", longSchedule), shows: "Changes by operators"},
	{name: "processor", hash: pageOf("processor", longProcessor), shows: "Changes by operators"},
	{name: "dead-letters", hash: pageOf("processor", deadProcessor), shows: "Replay all"},
	{name: "timeline", hash: "#/timeline", shows: "Who led which role"},
	{name: "metrics", hash: "#/metrics", shows: "busiest node"},
	{name: "audit", hash: "#/audit", shows: "step down"},
	{name: "alerts", hash: "#/alerts", shows: "no_scheduler_leader"},
	{name: "unknown-page", hash: "#/nothing", shows: "no such page"},
	{name: "unknown-role", hash: pageOf("role", longName("unknown", longestName)), shows: "No role with this name"},
	{name: "unknown-node", hash: "#/node/x", shows: "No node with this id"},
	{name: "step-down-dialog", hash: pageOf("role", longRole), shows: "Who led when", opens: "step_down " + longRole},
	{name: "hand-over-dialog", hash: pageOf("role", longRole), shows: "Who led when", opens: "hand_over " + longRole},
	{name: "dismiss-dialog", hash: pageOf("processor", deadProcessor), shows: "Replay all", opens: "dismiss all"},
	{name: "run-dialog", hash: pageOf("schedule", longSchedule), shows: "Changes by operators", opens: "trigger " + longSchedule, confirms: true},
	{name: "output", hash: pageOf("schedule", longSchedule), shows: "Changes by operators", unfolds: `[data-action^="output "]`},
	{name: "values", hash: "#/metrics", shows: "busiest node", unfolds: "summary"},
}

// outagePages are the pages whose every state has an age while the database cannot be read.
var outagePages = []shownPage{
	{name: "overview-in-outage", hash: "#/", shows: "Latest events"},
	{name: "nodes-in-outage", hash: "#/nodes", shows: "Changes of nodes"},
	{name: "work-in-outage", hash: "#/work", shows: "Schedules"},
	{name: "alerts-in-outage", hash: "#/alerts", shows: "no_scheduler_leader"},
	{name: "events-in-outage", hash: "#/events", shows: "requested by"},
}

// geometryCheck checks pages and counts them. It accepts no finding: a page that has one is mended.
type geometryCheck struct{ checked int }

// check checks what a page shows at present.
func (c *geometryCheck) check(t *testing.T, p *page, name string, width int) {
	t.Helper()
	c.checked++
	for _, finding := range p.geometry(width) {
		t.Errorf("%s at %d pixels: %s", name, width, finding)
	}
	if *images != "" {
		p.writeScreenshot(fmt.Sprintf("geometry-%s-%d", name, width))
	}
}

// window gives the page a width, as phones and screens have it. Two of the widths are dark.
func (p *page) window(width int) {
	p.Helper()
	switch height := map[int]int64{360: 740, 390: 844, 768: 1024, 1100: 800, 1440: 900, 1920: 1080}[width]; {
	case width < 760:
		p.do("phone", chromedp.EmulateViewport(int64(width), height, chromedp.EmulateMobile))
	default:
		p.do("screen", chromedp.EmulateViewport(int64(width), height))
	}
	p.theme(map[bool]string{true: "dark", false: "light"}[width == 390 || width == 1440])
}

// pages checks pages at all widths.
func (c *geometryCheck) pages(t *testing.T, p *page, pages []shownPage) {
	for _, width := range geometryWidths {
		p.window(width)
		for _, shown := range pages {
			t.Run(fmt.Sprintf("%s/%d", shown.name, width), func(t *testing.T) {
				defer p.reportTo(t)()
				if path, kind, ok := strings.Cut(shown.hash, "/incident/{"); ok {
					p.visit(path + "/incident/" + p.incident(strings.TrimSuffix(kind, "}")))
				} else {
					p.visit(shown.hash)
				}
				p.shows(shown.shows)
				if shown.opens != "" {
					button := fmt.Sprintf("document.querySelector('[data-action=%q]')", shown.opens)
					p.await("the button", button+" !== null")
					value[bool](p, button+".click(), true")
					p.await("the dialog", `document.querySelector("dialog:modal") !== null`)
				}
				if shown.confirms {
					const latest = `document.querySelector("tr[data-run]").dataset.run`
					p.await("the runs", `document.querySelector("tr[data-run]") !== null`)
					before := value[string](p, latest)
					defer func() { p.await("the new run is shown", latest+" !== "+quote(before)) }() // the next page is at rest
					value[bool](p, `document.querySelector("dialog .primary").click(), true`)
					p.await("the answer", `!["", "Sending…"].includes(document.querySelector("dialog .answer").textContent)`)
				}
				if shown.unfolds != "" {
					// A new run of the schedule can add more: only these must be open.
					value[bool](p, fmt.Sprintf("window.unfolded = [...document.querySelectorAll(%q)], unfolded.forEach((e) => e.click()), true", shown.unfolds))
					p.await("more is shown", `unfolded.every((e) => !e.isConnected || e.getAttribute("aria-expanded") !== "false")`)
				}
				p.settle()
				c.check(t, p, shown.name, width)
				value[bool](p, `document.querySelector("dialog")?.close(), true`)
				p.await("no dialog", `document.querySelector("dialog") === null`)
			})
		}
	}
}

// incident returns the id of the first incident of a kind.
func (p *page) incident(kind string) string {
	p.Helper()
	const all = `fetch("api/incidents?limit=100").then((r) => r.json()).then((all) => all.rows.filter((i) => i.kind === %q).at(-1).id)`
	return value[string](p, fmt.Sprintf(all, kind))
}

// TestPagesKeepTheirGeometry: on a cluster with long names, many rows and everything broken, no two
// texts of a page overlap, none is cut off without a full form, no control is hidden, and no page
// scrolls sideways, on phones and on screens.
func TestPagesKeepTheirGeometry(t *testing.T) {
	if *images != "" {
		if err := os.MkdirAll(*images, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := &geometryCheck{}
	b := newBrokenCluster(t)
	c.signIn(t, b)
	p := b.open("")
	p.recordCanvases()
	p.logIn()
	c.pages(t, p, brokenPages)
	b.silence(p)
	c.pages(t, p, outagePages)
	p.forgive("404")
	p.forgive("ERR_")
	p.forgive("503")
	if all := len(geometryWidths) * (len(brokenPages) + len(outagePages) + len(signInPages)); c.checked < all {
		t.Logf("%d of %d pages were checked", c.checked, all)
	}
}

// signInPages are the names of the pages that ask for a login.
var signInPages = []string{"sign-in", "refused-sign-in", "single-sign-on"}

// signIn checks the pages that ask for a login.
func (c *geometryCheck) signIn(t *testing.T, b *brokenCluster) {
	known, err := dashboard.Tokens(map[string]string{longUser: token}, nil)
	if err != nil {
		t.Fatal(err)
	}
	passwords, err := dashboard.Passwords(map[string]string{longUser: token}, nil)
	if err != nil {
		t.Fatal(err)
	}
	unused := dashboard.SignOn{
		Begin: func(context.Context, dashboard.Flow) (string, error) { return "", dashboard.ErrNoAccess },
		Finish: func(context.Context, url.Values, dashboard.Flow) (dashboard.User, error) {
			return dashboard.User{}, dashboard.ErrNoAccess
		},
	}
	byToken := newWorldOn(t, b.Installation, dashboard.Config{Title: longTitle, Authentication: dashboard.Authentication{Required: true, Token: known}}, nil).open("")
	elsewhere := newWorldOn(t, b.Installation, dashboard.Config{Title: longTitle, Authentication: dashboard.Authentication{Required: true, Password: passwords, SignOn: &unused}}, nil).open("")
	for _, width := range geometryWidths {
		byToken.window(width)
		t.Run(fmt.Sprintf("%s/%d", signInPages[0], width), func(t *testing.T) {
			defer byToken.reportTo(t)()
			byToken.do("load", chromedp.Reload())
			byToken.shows("Enter the access token")
			c.check(t, byToken, signInPages[0], width)
		})
		t.Run(fmt.Sprintf("%s/%d", signInPages[1], width), func(t *testing.T) {
			defer byToken.reportTo(t)()
			byToken.do("enter a wrong token", chromedp.SendKeys("#token", strings.Repeat("wrong", 40)+"\r"))
			byToken.shows("That token is not valid.")
			c.check(t, byToken, signInPages[1], width)
		})
		elsewhere.window(width)
		t.Run(fmt.Sprintf("%s/%d", signInPages[2], width), func(t *testing.T) {
			defer elsewhere.reportTo(t)()
			elsewhere.shows("single sign-on")
			c.check(t, elsewhere, signInPages[2], width)
		})
	}
	byToken.forgive("401")
}
