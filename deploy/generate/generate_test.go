package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/metrics"
)

// The files in the repository are those that the definitions make.
func TestFilesAreCurrent(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 {
		t.Errorf("%d files", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("deploy/%s is not what the definitions make: run go generate ./deploy/generate", name)
		}
	}
}

// metricsIn are the metrics that a text asks for, without their prefix.
func metricsIn(text, prefix string) map[string]bool {
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(regexp.QuoteMeta(prefix)+`_([a-z_]+)`).FindAllStringSubmatch(text, -1) {
		names[strings.TrimSuffix(found[1], "_bucket")] = true
	}
	return names
}

// Whatever is asked for exists, and the dashboard shows every metric.
func TestUsedMetricsExist(t *testing.T) {
	exist := map[string]bool{}
	for _, definition := range metrics.Definitions() {
		exist[definition.Name] = true
	}
	board, err := renderDashboard()
	if err != nil {
		t.Fatal(err)
	}
	shown := metricsIn(string(board), prefixVariable)
	for name := range exist {
		if !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	rules := ""
	for _, r := range append(append([]rule{}, recordings...), alerts...) {
		rules += named(r.expression, "tenure") + "\n"
	}
	needed := metricsIn(strings.NewReplacer("role:tenure_", "", "status:tenure_", "", "processor:tenure_", "").Replace(rules), "tenure")
	if len(needed) < 10 {
		t.Errorf("the rules ask for %d metrics: the test looks in the wrong place", len(needed))
	}
	for _, names := range []map[string]bool{shown, needed} {
		for name := range names {
			if !exist[name] && name != "leader_losses" { // of a recorded series
				t.Errorf("%s is asked for and does not exist", name)
			}
		}
	}
}

// The words of the alerts stand in the documentation.
func TestPageListsEveryAlert(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range alerts {
		if !strings.Contains(string(page), "| `"+r.alert+"` |") {
			t.Errorf("docs/reference/metrics.md does not list %s", r.alert)
		}
	}
}
