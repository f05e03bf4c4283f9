package alerts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Traps says where a condition that is right in itself probably does not mean
// what it seems to. The prefix is that of the metrics, if it is not the default.
func Traps(condition, prefix string) []string {
	expression, err := parse(condition)
	if err != nil {
		return nil
	}
	traps := unknownMetrics(expression, prefix)
	guarded := isGuarded(expression)
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		comparison, ok := node.(*parser.BinaryExpr)
		if !ok || !comparison.Op.IsComparisonOperator() {
			return nil
		}
		c, ok := comparedWith(comparison)
		if !ok {
			return nil
		}
		for _, trap := range []string{c.perSecond(), c.neverResolves(), c.canVanish(guarded)} {
			if trap != "" {
				traps = append(traps, trap)
			}
		}
		return nil
	})
	return traps
}

// comparisonWith is a comparison with a number, which stands on the right.
type comparisonWith struct {
	side   parser.Expr
	op     parser.ItemType
	number float64
}

func comparedWith(e *parser.BinaryExpr) (comparisonWith, bool) {
	turned := map[parser.ItemType]parser.ItemType{
		parser.GTR: parser.LSS, parser.GTE: parser.LTE, parser.LSS: parser.GTR, parser.LTE: parser.GTE,
	}
	if n, ok := numberIn(e.RHS); ok {
		return comparisonWith{e.LHS, e.Op, n}, true
	}
	if n, ok := numberIn(e.LHS); ok {
		op := e.Op
		if other, ok := turned[op]; ok {
			op = other
		}
		return comparisonWith{e.RHS, op, n}, true
	}
	return comparisonWith{}, false
}

func numberIn(e parser.Expr) (float64, bool) {
	switch e := e.(type) {
	case *parser.NumberLiteral:
		return e.Val, true
	case *parser.ParenExpr:
		return numberIn(e.Expr)
	case *parser.UnaryExpr:
		n, ok := numberIn(e.Expr)
		if e.Op == parser.SUB {
			n = -n
		}
		return n, ok
	}
	return 0, false
}

// perSecond tells of a rate that is compared with a number of events.
func (c comparisonWith) perSecond() string {
	var trap string
	parser.Inspect(c.side, func(node parser.Node, _ []parser.Node) error {
		call, ok := node.(*parser.Call)
		if !ok || call.Func.Name != "rate" && call.Func.Name != "irate" || c.number < 1 || c.op != parser.GTR && c.op != parser.GTE {
			return nil
		}
		window, ok := call.Args[0].(*parser.MatrixSelector)
		if !ok {
			return nil
		}
		trap = fmt.Sprintf("%s is per second: %s %s means %s in %v; for that many events write increase(%s) %s %s",
			call.Func.Name, c.op, written(c.number), written(c.number*window.Range.Seconds()), model.Duration(window.Range),
			window.String(), c.op, written(c.number))
		return nil
	})
	return trap
}

// neverResolves tells of a counter that, once it is above a number, stays there.
func (c comparisonWith) neverResolves() string {
	selector := plainSelector(c.side)
	if selector == nil || !isCounter(selector.Name) || c.op != parser.GTR && c.op != parser.GTE && c.op != parser.NEQ {
		return ""
	}
	return fmt.Sprintf("%s only grows, so the alert never resolves: compare increase(%s[5m]) instead", selector.Name, selector.String())
}

// canVanish tells of a comparison that is meant to find that something is missing
// or low, over series that are not there when it is.
func (c comparisonWith) canVanish(guarded bool) string {
	low := c.op == parser.LSS || c.op == parser.LTE || c.op == parser.EQLC && c.number == 0
	selector := plainSelector(c.side)
	if !low || guarded || selector == nil || alwaysThere(selector.Name) {
		return ""
	}
	return fmt.Sprintf("the series of %s end when no node has them, and then the condition yields nothing and does not fire: add \"or absent(%s)\"",
		selector.Name, selector.String())
}

// plainSelector is the only series that an expression is about, as it is or
// aggregated; nil if there is more to it.
func plainSelector(e parser.Expr) *parser.VectorSelector {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return e
	case *parser.ParenExpr:
		return plainSelector(e.Expr)
	case *parser.StepInvariantExpr:
		return plainSelector(e.Expr)
	case *parser.AggregateExpr:
		if e.Op == parser.COUNT {
			return nil
		}
		return plainSelector(e.Expr)
	}
	return nil
}

// isGuarded tells whether an expression thinks of series that are not there.
func isGuarded(e parser.Expr) bool {
	guarded := false
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.Call:
			guarded = guarded || node.Func.Name == "absent" || node.Func.Name == "absent_over_time"
		case *parser.BinaryExpr:
			guarded = guarded || node.Op == parser.LOR
		}
		return nil
	})
	return guarded
}

func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_count", "_bucket"}, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// alwaysThere tells whether the aggregator keeps series of a metric for every
// role or node that is known.
func alwaysThere(name string) bool {
	return strings.HasSuffix(name, "_leader_is_leader") || strings.HasSuffix(name, "_node_up")
}

func written(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }
