package alerts

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/program/config"
)

// TestConditionErrorsNameTheirPlace: errors of conditions and templates are reported at their
// place in the file; for a condition, within its text.
func TestConditionErrorsNameTheirPlace(t *testing.T) {
	config.Speak(Language{})
	t.Cleanup(func() { config.Speak(nil) })
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"PromQL", "[[alerts]]\nname = 'a'\ncondition = \"sum(up{role='x'}) == == 0\"\n", []string{
			`3:35: alerts[0].condition: unexpected <op:==>`}},
		{"PromQL over lines", "[[alerts]]\nname = 'a'\ncondition = '''\nsum(up)\n  == ==\n'''", []string{
			`5:6: alerts[0].condition: unexpected <op:==>`}},
		{"PromQL after other characters", "[[alerts]]\nname = 'a'\ncondition = 'up{a=\"üü\"} +'", []string{
			`3:26: alerts[0].condition: unexpected end of input`}},
		{"PromQL with escapes", "[[alerts]]\nname = 'a'\ncondition = \"sum(\\u0020\"", []string{
			`3:13: alerts[0].condition: unclosed left parenthesis`}},
		{"PromQL of another type", "[[alerts]]\nname = 'a'\ncondition = 'up[5m]'", []string{
			`3:14: alerts[0].condition: a condition yields one value of each series, and this yields a range vector`}},
		{"templates and labels", "[[alerts]]\nname = 'a'\ncondition = 'up'\nlabels = { severity = 'x', 'a b' = '' }\n" +
			"annotations = { s = '{{ $lables.x }}' }", []string{
			`5:21: alerts[0].annotations.s: template: template:1: undefined variable "$lables"`}},
		{"a template of a runbook", "[[alerts]]\nname = 'a'\ncondition = 'up'\nrunbook = '{{'", []string{
			`4:11: alerts[0].runbook: template: template:1: unclosed action`}},
	} {
		_, err := config.Parse("f", []byte(test.file), func(string) (string, bool) { return "", false })
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "f:")
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the errors are\n%s\nbut should be\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// TestPageExampleIsNotDoubtful: the conditions and templates of the page's example are valid,
// and its metrics exist.
func TestPageExampleIsNotDoubtful(t *testing.T) {
	config.Speak(Language{})
	t.Cleanup(func() { config.Speak(nil) })
	page, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```toml\n# tenure.toml")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the page has no example that begins with # tenure.toml")
	}
	file, err := config.Parse("tenure.toml", []byte(example), func(string) (string, bool) { return "https://hooks.example/x", true })
	if err != nil {
		t.Fatal(err)
	}
	if notices := file.Notices(); len(file.Alerts()) == 0 || len(notices) > 0 {
		t.Errorf("%d alerts; the example is doubtful: %q", len(file.Alerts()), notices)
	}
}
