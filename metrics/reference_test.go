package metrics_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/exactly-one/tenure/internal/docpage"
	"github.com/exactly-one/tenure/metrics"
)

// referenceTables are the tables of metrics, by the first word of their names.
var referenceTables = []struct {
	title string
	words []string
}{
	{"Elections", []string{"leader"}},
	{"PostgreSQL", []string{"postgres"}},
	{"Cluster", []string{"cluster", "node"}},
	{"Processors, schedules and retention", []string{"work", "processor", "cron", "retention"}},
}

// The page lists every metric with its type, its labels and its help text.
func TestReferenceListsEveryMetric(t *testing.T) {
	var page strings.Builder
	listed := 0
	for _, table := range referenceTables {
		page.WriteString("### " + table.title + "\n\n" + docpage.Head("metric", "type", "labels", "value"))
		for _, definition := range metrics.Definitions() {
			word, _, _ := strings.Cut(definition.Name, "_")
			if !slices.Contains(table.words, word) {
				continue
			}
			page.WriteString(docpage.Row(docpage.Code("tenure_"+definition.Name), string(definition.Type),
				strings.Join(slices.Sorted(slices.Values(definition.Labels)), ", "), definition.Help))
			listed++
		}
		page.WriteString("\n")
	}
	if all := len(metrics.Definitions()); listed != all {
		t.Errorf("the tables have %d of %d metrics: give each one a table", listed, all)
	}
	if err := docpage.CheckReference("../docs/reference/metrics.md", page.String()); err != nil {
		t.Error(err)
	}
}
