package dashboard

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
)

// A name in a link stays a value: it becomes neither another scheme, host or parameter nor
// markup.
func TestLinkEscapesHostileNames(t *testing.T) {
	t.Parallel()
	link := Link{onRole, "Logs", "https://logs.example.com/roles/{role}?node={node}#{cluster}"}
	if err := link.Check(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"billing", "javascript:alert(1)", `"><img src=x onerror=alert(1)>`, "'", "a/../../b", "x?y=z&w#f", "//evil.example.com", "a b+c", "100%", "größe\u202e", "\x00\n", "{node}", `\\evil`,
	} {
		got, ok := link.address(map[string]string{"role": name, "node": name, "cluster": name})
		parsed, err := url.Parse(got.URL)
		if !ok || err != nil {
			t.Fatalf("%q: %q, %v", name, got.URL, err)
		}
		segments := strings.Split(parsed.EscapedPath(), "/")
		if parsed.Scheme != "https" || parsed.Host != "logs.example.com" || len(segments) != 3 || parsed.Path != "/roles/"+name ||
			len(parsed.Query()) != 1 || parsed.Query().Get("node") != name || parsed.Fragment != name {
			t.Errorf("%q became %q", name, got.URL)
		}
		if strings.ContainsAny(got.URL, "\"'<> \\\n") {
			t.Errorf("%q is not escaped in %q", name, got.URL)
		}
	}
	for _, name := range []string{"", ".", ".."} {
		if got, ok := link.address(map[string]string{"role": name, "node": "n", "cluster": "c"}); ok {
			t.Errorf("the name %q has the link %q; want none", name, got.URL)
		}
	}
}

// A template has an address of the web whose host is fixed, and only known placeholders.
func TestLinkCheckRejectsUnsafeTemplates(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://logs.example.com", "http://localhost:3000/d/x?var-role={role}&from={time}#{node}", "https://[::1]/{cluster}", "https://h?q={role}", "https://h#{role}", "HTTPS://h/{role}",
	} {
		if err := (Link{onRole, "Logs", good}).Check(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []Link{
		{onRole, "Logs", ""},
		{onRole, "Logs", "logs/{role}"},
		{onRole, "Logs", "//logs.example.com/{role}"},
		{onRole, "Logs", "javascript:alert('{role}')"},
		{onRole, "Logs", "javascript://h/%0aalert(1)"},
		{onRole, "Logs", "{role}://h/"},
		{onRole, "Logs", "https://{role}/"},
		{onRole, "Logs", "https://h.{role}?x"},
		{onRole, "Logs", "https://h{role}@evil/"},
		{onRole, "Logs", "https://user:pass@h/"},
		{onRole, "Logs", "https://h\\{role}/"},
		{onRole, "Logs", "https://h/{rolle}"},
		{onRole, "Logs", "https://h/{alert}"},
		{onNode, "Logs", "https://h/{role}"},
		{onRole, "Logs", "https://h/{role"},
		{onRole, "Logs", "https://h/ {role}"},
		{onRole, "Logs", `https://h/"{role}`},
		{onRole, "Logs", "https://h/\n{role}"},
		{onRole, "Logs", "https://h/" + strings.Repeat("x", maxLinkTemplate)},
		{onRole, "", "https://h/"},
		{onRole, strings.Repeat("x", maxLinkName+1), "https://h/"},
		{onRole, "Lo\u202egs", "https://h/"},
		{"term", "Logs", "https://h/"},
	} {
		if err := bad.Check(); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%+v: %v; want ErrInvalidConfig", bad, err)
		}
	}
	many := make([]Link, 21)
	for i := range many {
		many[i] = Link{onRole, "Logs", "https://h/"}
	}
	if err := checkLinks(many); !errors.Is(err, tenure.ErrInvalidConfig) {
		t.Errorf("%d links: %v", len(many), err)
	}
}

// Alerts get the links whose values they have, before their own ones.
func TestAlertsHaveLinks(t *testing.T) {
	t.Parallel()
	config := Config{Title: "eu", Links: []Link{
		{onAlert, "Runbook", "https://wiki/{cluster}/{alert}?at={time}"}, {onAlert, "Logs", "https://logs/{role}"}, {onRole, "Logs", "https://logs/{role}"},
	}}
	read := []Alert{
		{Name: "no leader", Labels: map[string]string{"role": "a/b"}, Since: time.Date(2026, 11, 21, 3, 12, 7, 0, time.UTC)},
		{Name: "slow", Links: []LinkAddress{{"Own", "https://own"}}},
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
		{onRole, "Logs", "https://logs/{role}?node={node}"}, {onRole, "Traces", "https://traces/{role}"}, {onNode, "Graphs", "https://graphs/{node}?in={cluster}&at={time}"},
		{onAlert, "Runbook", "https://wiki/{alert}"},
	}
	began := time.Date(2026, 11, 21, 3, 12, 7, 0, time.UTC)
	for _, c := range []struct {
		labels map[string]string
		role   string // without a label
		want   []LinkAddress
	}{
		{nil, "", []LinkAddress{{"Runbook", "https://wiki/no%20leader"}}},
		{nil, "mails", []LinkAddress{{"Runbook", "https://wiki/no%20leader"}, {"Traces (mails)", "https://traces/mails"}}},
		{map[string]string{"role": "a/b"}, "mails", []LinkAddress{{"Runbook", "https://wiki/no%20leader"}, {"Traces (a/b)", "https://traces/a%2Fb"}}},
		{map[string]string{"role": "a/b", "node_name": "api 1"}, "", []LinkAddress{
			{"Runbook", "https://wiki/no%20leader"}, {"Logs (a/b)", "https://logs/a%2Fb?node=api%201"}, {"Traces (a/b)", "https://traces/a%2Fb"},
			{"Graphs (api 1)", "https://graphs/api%201?in=eu&at=2026-11-21T03%3A12%3A07Z"},
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
		{onRole, "Logs", "https://logs/{role}?node={node}&at={time}"}, {onNode, "Graphs", "https://graphs/{node}?at={time}&in={cluster}"},
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
