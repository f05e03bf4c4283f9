package alerts

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Export writes rules as a file for Prometheus. There Alertmanager decides whom to
// notify; the addresses are in the label "notify", separated by commas, for its routes.
//
// The conditions are unchanged. If one relies on the aggregator's series of 0, Prometheus
// must scrape the aggregator's metrics of the cluster.
func Export(w io.Writer, rules []Rule) error {
	var text strings.Builder
	text.WriteString("groups:\n  - name: tenure\n    rules:\n")
	if len(rules) == 0 {
		text.Reset()
		text.WriteString("groups: []\n")
	}
	for _, r := range rules {
		fmt.Fprintf(&text, "      - alert: %s\n        expr: %s\n", quoted(r.Name), quoted(r.Condition))
		if r.For > 0 {
			fmt.Fprintf(&text, "        for: %s\n", model.Duration(r.For.Truncate(time.Millisecond)))
		}
		labels := map[string]string{"severity": r.Severity}
		if len(r.Notify) > 0 {
			labels["notify"] = strings.Join(r.Notify, ",")
		}
		maps.Copy(labels, r.Labels)
		writeMap(&text, "labels", labels)
		writeMap(&text, "annotations", r.Templates())
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func writeMap(text *strings.Builder, name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	fmt.Fprintf(text, "        %s:\n", name)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(text, "          %s: %s\n", quoted(key), quoted(values[key]))
	}
}

// quoted is a text as a double-quoted scalar of YAML. Its escapes are also Go's.
func quoted(text string) string { return strconv.QuoteToGraphic(text) }
