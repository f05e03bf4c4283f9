package link

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/exactly-one/tenure"
)

// A name in a link stays a value: it becomes neither another scheme, host or parameter nor
// markup.
func TestLinkEscapesHostileNames(t *testing.T) {
	t.Parallel()
	l := Template{OnRole, "Logs", "https://logs.example.com/roles/{role}?node={node}#{cluster}"}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"billing", "javascript:alert(1)", `"><img src=x onerror=alert(1)>`, "'", "a/../../b", "x?y=z&w#f", "//evil.example.com", "a b+c", "100%", "größe\u202e", "\x00\n", "{node}", `\\evil`,
	} {
		got, ok := l.Address(map[string]string{"role": name, "node": name, "cluster": name})
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
		if got, ok := l.Address(map[string]string{"role": name, "node": "n", "cluster": "c"}); ok {
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
		if err := (Template{OnRole, "Logs", good}).Check(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []Template{
		{OnRole, "Logs", ""},
		{OnRole, "Logs", "logs/{role}"},
		{OnRole, "Logs", "//logs.example.com/{role}"},
		{OnRole, "Logs", "javascript:alert('{role}')"},
		{OnRole, "Logs", "javascript://h/%0aalert(1)"},
		{OnRole, "Logs", "{role}://h/"},
		{OnRole, "Logs", "https://{role}/"},
		{OnRole, "Logs", "https://h.{role}?x"},
		{OnRole, "Logs", "https://h{role}@evil/"},
		{OnRole, "Logs", "https://user:pass@h/"},
		{OnRole, "Logs", "https://h\\{role}/"},
		{OnRole, "Logs", "https://h/{rolle}"},
		{OnRole, "Logs", "https://h/{alert}"},
		{OnNode, "Logs", "https://h/{role}"},
		{OnRole, "Logs", "https://h/{role"},
		{OnRole, "Logs", "https://h/ {role}"},
		{OnRole, "Logs", `https://h/"{role}`},
		{OnRole, "Logs", "https://h/\n{role}"},
		{OnRole, "Logs", "https://h/" + strings.Repeat("x", maxLinkTemplate)},
		{OnRole, "", "https://h/"},
		{OnRole, strings.Repeat("x", maxLinkName+1), "https://h/"},
		{OnRole, "Lo\u202egs", "https://h/"},
		{"term", "Logs", "https://h/"},
	} {
		if err := bad.Check(); !errors.Is(err, tenure.ErrInvalidConfig) {
			t.Errorf("%+v: %v; want ErrInvalidConfig", bad, err)
		}
	}
}
