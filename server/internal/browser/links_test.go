package browser

import (
	"context"
	"testing"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/server/dashboard"
)

// The pages of a role, a node and the alerts show their links, in which a hostile name
// stays a value. An address of another kind is not a link.
func TestLinksToOtherSitesAreShown(t *testing.T) {
	const hostile = `"><img src=x onerror=document.title='broken'>`
	w := newWorld(t, dashboard.Config{
		Links: []dashboard.Link{
			{On: "role", Name: "Logs", Template: "https://logs.example.com/{role}"},
			{On: "node", Name: "Graphs", Template: "https://graphs.example.com/?node={node}"},
			{On: "alert", Name: "Traces", Template: "https://traces.example.com/?alert={alert}"},
		},
		Alerts: func(context.Context) ([]dashboard.Alert, error) {
			return []dashboard.Alert{{Name: hostile, State: "firing", Severity: "error", Links: []dashboard.LinkAddress{{Name: "Odd", URL: "javascript:document.title='broken'"}}}}, nil
		},
	}, nil)
	node := w.node(w.backend, "api-1", tenure.Config{})
	w.campaign(node, hostile)
	w.leads(node, hostile)
	const escaped = "%22%3E%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D%27broken%27%3E"
	p := w.open("")
	p.shows(hostile) // the page of the role exists then
	for page, want := range map[string]string{
		"#/role/" + escaped:            "https://logs.example.com/" + escaped,
		"#/node/" + node.ID().String(): "https://graphs.example.com/?node=api-1",
		"#/alerts":                     "https://traces.example.com/?alert=" + escaped,
	} {
		p.visit(page)
		const links = `[...document.querySelectorAll('nav[aria-label="Links to other sites"] a')].filter((a) => a.checkVisibility())`
		p.await("a link on "+page, links+`.length === 1`)
		if got := value[[]string](p, links+`.map((a) => a.getAttribute("href"))`); len(got) != 1 || got[0] != want {
			t.Errorf("%s has the links %q, want %s", page, got, want)
		}
	}
	if value[string](p, `document.title`) == "broken" {
		t.Error("a name became markup")
	}
}
