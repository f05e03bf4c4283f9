package alerts

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/internal/pgtest"
	"github.com/exactly-one/tenure/internal/program/alerting"
)

// nested puts a condition into a call of itself.
func nested(times int, begin, inner, end string) string {
	return strings.Repeat(begin, times) + inner + strings.Repeat(end, times)
}

const metric = "tenure_leader_failovers_total"

// TestOversizedRulesAreRejected: what would take too much is refused where rules are
// read, so that tenure config check says it.
func TestOversizedRulesAreRejected(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		"count_over_time(vector(1)[30d:1ms]) > 0":                                                          "subquery is evaluated at 2592000001 points",
		"max_over_time(" + metric + "[1d:1s]) > 0":                                                         "86401 points",
		"max_over_time(max_over_time(" + metric + "[2h:1m])[2h:1m]) > 0":                                   "14641 points",
		"max_over_time(max_over_time(max_over_time(vector(1)[1h:1m])[1h:1m])[1h:1m]) > 0":                  "226981 points",
		"max_over_time(vector(1)[30d:]) > 0":                                                               "43201 points",
		"rate(" + metric + "[32d]) > 0":                                                                    "the range is",
		nested(20, "label_replace(", metric, `,"x","$1$1","x","(.*)")`):                                    "label_replace makes labels",
		nested(5, "label_join(", metric, `,"x","","x","x","x")`):                                           "label_join makes labels",
		strings.Repeat("1+", 600) + "1":                                                                    "parts; the limit is 1000",
		"vector(1) > " + strings.Repeat("0", maxCondition):                                                 "bytes; the limit is",
		"sum(" + metric + ") / ignoring(a) max_over_time(avg_over_time(" + metric + "[1h:1s])[4h:1h]) > 0": "18005 points",
	} {
		err := Validate(Rule{Name: "r", Severity: "info", Condition: condition})
		var place *alerting.ConditionError
		if !errors.Is(err, tenure.ErrInvalidConfig) || !errors.As(err, &place) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", condition, err, want)
		}
	}
	for _, condition := range []string{
		"rate(" + metric + "[1d]) > 0", "max_over_time(sum(" + metric + ")[1d:1m]) > 0", "max_over_time(rate(" + metric + "[5m])[1h:10s]) > 0",
		"max_over_time(vector(1)[7d:]) > 0", `label_replace(` + metric + `,"x","$1-$2","y","(.*)-(.*)") > 0`, strings.Repeat("1+", 300) + "1",
	} {
		if err := CheckCondition(condition); err != nil {
			t.Errorf("%.60s: %v", condition, err)
		}
	}
}

// TestExpensiveRulesFailAlone: rules that pass where they are read and take too much where
// they are evaluated, or that an operator wrote by SQL, fail with a reason. The process
// stays small, and other rules are evaluated.
func TestExpensiveRulesFailAlone(t *testing.T) {
	pgtest.Long(t)
	store, now := measured(10_000, 30)
	var union []string
	for i := range 140 {
		union = append(union, fmt.Sprintf(`label_replace(%s,"copy","%d","","")`, metric, i))
	}
	evil := map[string]string{
		"by SQL":     "count_over_time(vector(1)[30d:1ms]) > 0",
		"points":     "max_over_time(max_over_time(" + metric + "[1d:1m])[1d:1m]) > 0",
		"labels":     nested(30, "label_replace(", metric, `,"x","$1$1","role","(.*)")`),
		"samples":    fmt.Sprintf("sum(max_over_time((%s @ %d)[1d:10s])) > 0", metric, now.Unix()),
		"union":      strings.Join(union, " or "),
		"everything": `{__name__=~".+"} > 0`,
	}
	rules := []Rule{{Name: "good", Condition: "sum(" + metric + ") > bool 0"}}
	for name, condition := range evil {
		rules = append(rules, Rule{Name: name, Condition: condition})
	}
	debug.FreeOSMemory()
	before := heap()
	var peak atomic.Uint64
	done := make(chan struct{})
	measuredOut := make(chan struct{})
	go func() {
		defer close(measuredOut)
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
				peak.Store(max(peak.Load(), heap()))
			}
		}
	}()
	outcomes := newEvaluator(store).evaluate(t.Context(), now, rules)
	close(done)
	<-measuredOut
	for _, o := range outcomes {
		switch {
		case o.rule.Name == "good" && (o.err != nil || len(o.found) != 1):
			t.Errorf("the other rule: %v, %d found", o.err, len(o.found))
		case o.rule.Name == "everything": // it yields as many as there may be
		case o.rule.Name != "good" && o.err == nil:
			t.Errorf("%s has no error", o.rule.Name)
		}
		t.Logf("%s: %v", o.rule.Name, o.err)
	}
	grown := int64(peak.Load()) - int64(before)
	t.Logf("the heap grew by %d MB", grown>>20)
	if limit := int64(maxMemory + 256<<20); grown > limit {
		t.Errorf("the heap grew by %d MB; the limit is %d MB", grown>>20, limit>>20)
	}
}
