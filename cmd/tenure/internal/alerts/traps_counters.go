package alerts

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/exactly-one/tenure/cmd/tenure/internal/series"
	"github.com/exactly-one/tenure/metrics"
)

// rates are the functions that take counters, and see where these begin anew.
var rates = []string{"rate", "irate", "increase"}

// perSecond warns if a rate is compared with a number of events.
func (c comparisonWith) perSecond() string {
	if c.number < 1 || !c.high() {
		return ""
	}
	var trap string
	eachCall(c.side, []string{"rate", "irate"}, func(call *parser.Call, selector *parser.MatrixSelector, summed bool) {
		instead := "increase(" + selector.String() + ")"
		if !summed {
			instead = ofAll(selector, instead)
		}
		trap = fmt.Sprintf("%s is per second: %s %s means %s in %v; for that many events write %s %s %s",
			call.Func.Name, c.op, written(c.number), written(c.number*selector.Range.Seconds()), model.Duration(selector.Range),
			instead, c.op, written(c.number))
	})
	return trap
}

// ofEachProcess warns if several events are compared per process: each process has
// a separate counter, and the events of a role are spread over all its leaders.
func (c comparisonWith) ofEachProcess() string {
	if c.number < 1 || !c.high() {
		return ""
	}
	var trap string
	eachCall(c.side, []string{"increase"}, func(call *parser.Call, selector *parser.MatrixSelector, summed bool) {
		if vector, ok := selector.VectorSelector.(*parser.VectorSelector); !ok || summed || !isOurs(vector.Name) {
			return
		}
		trap = fmt.Sprintf("each process has its own counter: for the total of all processes write %s %s %s",
			ofAll(selector, call.String()), c.op, written(c.number))
	})
	return trap
}

// eachCall calls fn with each call of some functions on a series, and whether it is
// aggregated.
func eachCall(e parser.Expr, names []string, fn func(call *parser.Call, selector *parser.MatrixSelector, summed bool)) {
	parser.Inspect(e, func(node parser.Node, path []parser.Node) error {
		call, ok := node.(*parser.Call)
		if !ok || !slices.Contains(names, call.Func.Name) {
			return nil
		}
		selector, ok := call.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		fn(call, selector, slices.ContainsFunc(path, func(above parser.Node) bool {
			_, summed := above.(*parser.AggregateExpr)
			return summed
		}))
		return nil
	})
}

// ofAll is an expression over the series of a selector, summed over all processes.
func ofAll(selector *parser.MatrixSelector, expression string) string {
	if vector, ok := selector.VectorSelector.(*parser.VectorSelector); ok {
		if d, known := definitionOf(vector.Name); known && slices.Contains(d.Labels, "role") {
			return "sum by (role) (" + expression + ")"
		}
	}
	return "sum(" + expression + ")"
}

func isOurs(name string) bool {
	_, ok := definitionOf(name)
	return ok
}

// neverResolves warns of a counter that, once it is above a number, stays there.
func (c comparisonWith) neverResolves() string {
	selector := plainSelector(c.side)
	if selector == nil || !isCounter(selector.Name) || !c.high() && c.op != parser.NEQ {
		return ""
	}
	return fmt.Sprintf("%s only increases, so the alert does not resolve before the process ends: compare increase(%s[5m]) instead",
		selector.Name, selector.String())
}

// wrongType warns of functions of counters over a gauge, and of resets, which no
// counter has: a process that starts again has another series.
func wrongType(call *parser.Call) string {
	if len(call.Args) == 0 {
		return ""
	}
	selector, ok := call.Args[0].(*parser.MatrixSelector)
	if !ok {
		return ""
	}
	vector, ok := selector.VectorSelector.(*parser.VectorSelector)
	if !ok {
		return ""
	}
	d, known := definitionOf(vector.Name)
	switch {
	case known && d.Type == metrics.GaugeSeries && slices.Contains(rates, call.Func.Name):
		return fmt.Sprintf("%s is not a counter, and each decrease would count as a restart: use delta or changes instead of %s",
			vector.Name, call.Func.Name)
	case call.Func.Name == "resets":
		return fmt.Sprintf("a process that restarts has separate series, so resets(%s) is always 0", selector)
	}
	return ""
}

// rateOfSum warns of a rate over a sum of counters, which falls when a process
// ends.
func rateOfSum(call *parser.Call) string {
	if !slices.Contains(rates, call.Func.Name) {
		return ""
	}
	subquery, ok := call.Args[0].(*parser.SubqueryExpr)
	if !ok {
		return ""
	}
	selector := plainSelector(subquery.Expr)
	if _, selected := subquery.Expr.(*parser.VectorSelector); selector == nil || selected || !isCounter(selector.Name) {
		return ""
	}
	return fmt.Sprintf("a sum of counters decreases when a process ends, which %s counts as a restart of all: sum over %s(%s[%v]) instead",
		call.Func.Name, call.Func.Name, selector, model.Duration(subquery.Range))
}

// sampleEvery is how often nodes write samples.
const sampleEvery = 10 * time.Second

// outOfReach warns of a time that the aggregator does not keep, and of a time so
// short that it seldom contains the two samples that a rate needs.
func outOfReach(selector *parser.MatrixSelector, path []parser.Node) string {
	vector, ok := selector.VectorSelector.(*parser.VectorSelector)
	if !ok {
		return ""
	}
	if trap := beyondRetention(selector.Range, vector.OriginalOffset, selector.String()); trap != "" || len(path) == 0 {
		return trap
	}
	call, ok := path[len(path)-1].(*parser.Call)
	if !ok || !slices.Contains([]string{"rate", "irate", "increase", "delta", "idelta", "deriv", "changes"}, call.Func.Name) {
		return ""
	}
	if least := 3 * max(sampleEvery, series.Step(vector.OriginalOffset)); selector.Range < least {
		return fmt.Sprintf("%s needs two samples, which [%v] often does not contain: use at least %v",
			call.Func.Name, model.Duration(selector.Range), model.Duration(least))
	}
	return ""
}

// beyondRetention warns of a time of which the aggregator keeps only a part.
func beyondRetention(length, offset time.Duration, text string) string {
	if length+offset <= series.Retention {
		return ""
	}
	return fmt.Sprintf("samples are kept for %v: %s sees no more", model.Duration(series.Retention), text)
}
