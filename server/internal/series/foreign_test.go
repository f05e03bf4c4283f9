package series

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/common/expfmt"

	"github.com/exactly-one/tenure/internal/printable"
	"github.com/exactly-one/tenure/metrics"
)

// TestForeignLabelsArePrintable: a process that may write samples and names cannot
// control the terminal of a user who reads the metrics, nor make a series that no
// format can carry.
func TestForeignLabelsArePrintable(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2J\u009b31m\u202e\u200b\nb"
	s, id := New(Config{}), uuid.New()
	s.Append(metrics.Snapshot{Node: id, NodeName: evil, At: begin, Series: []metrics.Series{
		gauge("tenure_leader_is_leader", 1, "role", evil),
		gauge("app_"+evil, 1), gauge("app_x", 1, evil, "y"), gauge("app_cut", 1, "role", "cut \xe2\x80"),
	}})
	s.Complete(begin.Add(time.Second), []string{evil, "led\u2028"}, []Node{{ID: id, Name: evil, Alive: true, Leads: []string{evil}}})
	families, err := s.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`role="a\\u001b[2J\\u009b31m\\u202e\\u200b\\u000ab"`, `role="led\\u2028"`, `role="cut \\xe2\\x80"`} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("%s is not there once:\n%q", want, text.String())
		}
	}
	if printable.Lines(text.String()) != text.String() || strings.Contains(text.String(), "app_a") || strings.Contains(text.String(), "app_x") {
		t.Errorf("%q", text.String())
	}
}
