package alerts

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestEndlessTemplateIsRejected: a template that would print without end is refused where it
// is read, and one that an operator wrote by SQL fails in its place.
func TestEndlessTemplateIsRejected(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{{ range 1000000000 }}x{{ end }}":                                                    "counts to more than",
		"{{ range (or 1000000000 1) }}x{{ end }}":                                             "counts to more than",
		`{{ range query "a" }}{{ range query "b" }}x{{ end }}{{ end }}`:                       "range within a range",
		`{{ range query "a" }}{{ if true }}{{ range query "b" }}x{{ end }}{{ end }}{{ end }}`: "range within a range",
		`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`:                       "defines others",
		`{{ template "template" }}`:                                                           "calls another one",
		"{{ 1 }}" + strings.Repeat("x", maxTemplate):                                          "bytes; the limit is",
	} {
		if err := CheckTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %q", text, err, want)
		}
		got := expand(context.Background(), map[string]string{"a": text}, nil, 1, time.Now(), nil)["a"]
		if !strings.Contains(got, "error expanding") || !strings.Contains(got, want) {
			t.Errorf("%.60s is expanded to %.100q", text, got)
		}
	}
	doubling := `{{ $x := "xxxxxxxx" }}` + strings.Repeat(`{{ $x = printf "%s%s" $x $x }}`, 40) + "{{ $x }}"
	for _, text := range []string{doubling, `{{ printf "%1000000d" 1 }}`, strings.ReplaceAll(doubling, `printf "%s%s"`, "print")} {
		got := expand(context.Background(), map[string]string{"a": text}, nil, 1, time.Now(), nil)["a"]
		if !strings.Contains(got, "a function prints") {
			t.Errorf("%.60s is expanded to %.100q", text, got)
		}
	}
	for _, text := range []string{
		"{{ $labels.role }} is at {{ $value | humanize }}", `{{ range query "up" }}{{ .Labels.x }}{{ end }}{{ range query "b" }}x{{ end }}`, "plain", "{{ range 10 }}x{{ end }}",
	} {
		if err := CheckTemplate(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
