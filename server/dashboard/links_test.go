package dashboard

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/program/link"
)

// Alerts get the links whose values they have, before their own ones.
func TestAlertsHaveLinks(t *testing.T) {
	t.Parallel()
	config := Config{Title: "eu", Links: []Link{
		{On: link.OnAlert, Name: "Runbook", Template: "https://wiki/{cluster}/{alert}?at={time}"}, {On: link.OnAlert, Name: "Logs", Template: "https://logs/{role}"}, {On: link.OnRole, Name: "Logs", Template: "https://logs/{role}"},
	}}
	read := []Alert{
		{Name: "no leader", Labels: map[string]string{"role": "a/b"}, Since: time.Date(2026, 11, 21, 3, 12, 7, 0, time.UTC)},
		{Name: "slow", Links: []LinkAddress{{Name: "Own", URL: "https://own"}}},
	}
	got := config.linkAlerts(read)
	if len(got[0].Links) != 2 || got[0].Links[0].URL != "https://wiki/eu/no%20leader?at=2026-11-21T03%3A12%3A07Z" || got[0].Links[1].URL != "https://logs/a%2Fb" {
		t.Errorf("%+v", got[0].Links)
	}
	if len(got[1].Links) != 1 || got[1].Links[0].Name != "Own" {
		t.Errorf("an alert without a role and a time: %+v", got[1].Links)
	}
	if len(read[0].Links) != 0 {
		t.Errorf("the caller's alerts changed: %+v", read[0].Links)
	}
}

// A message about an alert has the links on the alert, on its role and on its node.
func TestMessagesHaveLinks(t *testing.T) {
	t.Parallel()
	links := []Link{
		{On: link.OnRole, Name: "Logs", Template: "https://logs/{role}?node={node}"}, {On: link.OnRole, Name: "Traces", Template: "https://traces/{role}"}, {On: link.OnNode, Name: "Graphs", Template: "https://graphs/{node}?in={cluster}&at={time}"},
		{On: link.OnAlert, Name: "Runbook", Template: "https://wiki/{alert}"},
	}
	began := time.Date(2026, 11, 21, 3, 12, 7, 0, time.UTC)
	for _, c := range []struct {
		labels map[string]string
		role   string // without a label
		want   []LinkAddress
	}{
		{nil, "", []LinkAddress{{Name: "Runbook", URL: "https://wiki/no%20leader"}}},
		{nil, "mails", []LinkAddress{{Name: "Runbook", URL: "https://wiki/no%20leader"}, {Name: "Traces (mails)", URL: "https://traces/mails"}}},
		{map[string]string{"role": "a/b"}, "mails", []LinkAddress{{Name: "Runbook", URL: "https://wiki/no%20leader"}, {Name: "Traces (a/b)", URL: "https://traces/a%2Fb"}}},
		{map[string]string{"role": "a/b", "node_name": "api 1"}, "", []LinkAddress{
			{Name: "Runbook", URL: "https://wiki/no%20leader"}, {Name: "Logs (a/b)", URL: "https://logs/a%2Fb?node=api%201"}, {Name: "Traces (a/b)", URL: "https://traces/a%2Fb"},
			{Name: "Graphs (api 1)", URL: "https://graphs/api%201?in=eu&at=2026-11-21T03%3A12%3A07Z"},
		}},
	} {
		if got := LinksOf(links, "eu", Alert{Name: "no leader", Labels: c.labels, Role: c.role, Since: began}); !slices.Equal(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.labels, got, c.want)
		}
	}
	many := slices.Repeat(links[3:], 21)
	if got := LinksOf(many, "eu", Alert{Name: "a"}); len(got) != 20 {
		t.Errorf("%d links", len(got))
	}
}

// The pages of a role and of a node have their links, with the time of what they show.
func TestPagesHaveLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{Title: "eu", Links: []Link{
		{On: link.OnRole, Name: "Logs", Template: "https://logs/{role}?node={node}&at={time}"}, {On: link.OnNode, Name: "Graphs", Template: "https://graphs/{node}?at={time}&in={cluster}"},
	}})
	const hostile = `javascript:"a b`
	node, _ := w.node("api 1", hostile)
	w.led(hostile, "api 1")
	role := get[struct {
		Role  roleRecord
		Links []LinkAddress
	}](w, "/api/role?name="+escaped(hostile))
	want := "https://logs/javascript%3A%22a%20b?node=api%201&at=" + url.QueryEscape(role.Role.Began.UTC().Format(time.RFC3339))
	if len(role.Links) != 1 || role.Links[0].URL != want {
		t.Errorf("the role has %+v, want %s", role.Links, want)
	}
	detail := get[nodeDetail](w, "/api/node?id="+node.ID().String())
	if len(detail.Links) != 1 || !strings.HasPrefix(detail.Links[0].URL, "https://graphs/api%201?at=20") || !strings.HasSuffix(detail.Links[0].URL, "&in=eu") {
		t.Errorf("the node has %+v", detail.Links)
	}
}

// A page shows at most so many links.
func TestTooManyLinksAreRefused(t *testing.T) {
	t.Parallel()
	many := make([]Link, 21)
	for i := range many {
		many[i] = Link{On: link.OnRole, Name: "Logs", Template: "https://h/"}
	}
	if err := checkLinks(many); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("%d links: %v", len(many), err)
	}
}
