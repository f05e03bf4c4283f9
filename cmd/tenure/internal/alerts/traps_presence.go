package alerts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// canVanish warns of a comparison that must find that something is missing or low,
// over series that do not exist in that case.
func (c comparisonWith) canVanish(guarded bool) string {
	selector := plainSelector(c.side)
	if !c.low() || guarded || selector == nil || alwaysThere(selector) {
		return ""
	}
	trap := fmt.Sprintf("the series of %s end when no node has them, and then the condition yields nothing and does not fire: add \"or absent(%s)\"",
		selector.Name, selector.String())
	if selectedBy(selector, "node", "node_name") || selector == c.side {
		trap += "; that a node is gone, tenure_node_up == 0 finds"
	}
	return trap
}

// countsNothing warns of an aggregation that yields nothing, and not 0, if no
// series passes the inner condition. It also warns of a count of series that always
// exist.
func (c comparisonWith) countsNothing(guarded bool) string {
	side := c.side
	for {
		inner, ok := side.(*parser.ParenExpr)
		if !ok {
			break
		}
		side = inner.Expr
	}
	aggregate, ok := side.(*parser.AggregateExpr)
	if !ok || !c.low() || guarded {
		return ""
	}
	if selector, ok := aggregate.Expr.(*parser.VectorSelector); ok && aggregate.Op == parser.COUNT {
		if alwaysThere(selector) {
			return fmt.Sprintf("%s has series of 0 for every role and node, which count counts: compare sum(%s)", selector.Name, selector)
		}
	} else if !filters(aggregate.Expr) {
		return ""
	}
	return fmt.Sprintf("%s of no series is no series and not 0, so the condition does not fire: write (%s or vector(0)) %s %s",
		side, side, c.op, written(c.number))
}

// neverAbsent warns of absent over series that the aggregator keeps for everything
// it knows.
func neverAbsent(call *parser.Call) string {
	if call.Func.Name != "absent" || len(call.Args) == 0 {
		return ""
	}
	selector := plainSelector(call.Args[0])
	if selector == nil || !isLeader(selector) || !alwaysThere(selector) {
		return ""
	}
	return fmt.Sprintf("%s has a series of 0 where no node leads, so it is never absent: write sum(%s) == 0", selector.Name, selector)
}

// firesAlways warns of a condition that excludes no series.
func firesAlways(e parser.Expr) string {
	if filters(e) {
		return ""
	}
	if comparison, ok := e.(*parser.BinaryExpr); ok && comparison.ReturnBool {
		return "with bool a comparison yields 0 or 1 and filters nothing, so the alert always fires: remove bool"
	}
	return "the condition filters no series, so the alert fires for every value: add a comparison"
}

// filters reports whether the result of an expression depends on values or on which
// series exist: whether it can yield nothing for series that continue.
func filters(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return filters(e.Expr)
	case *parser.StepInvariantExpr:
		return filters(e.Expr)
	case *parser.UnaryExpr:
		return filters(e.Expr)
	case *parser.SubqueryExpr:
		return filters(e.Expr)
	case *parser.AggregateExpr:
		return filters(e.Expr)
	case *parser.Call:
		return strings.HasPrefix(e.Func.Name, "absent") || slices.ContainsFunc(e.Args, filters)
	case *parser.BinaryExpr:
		return binaryFilters(e)
	}
	return false
}

func binaryFilters(e *parser.BinaryExpr) bool {
	switch {
	case e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return true
	case e.Op == parser.LOR:
		return filters(e.LHS) && filters(e.RHS)
	case e.Op.IsComparisonOperator() && !e.ReturnBool:
		return true
	}
	return filters(e.LHS) || filters(e.RHS)
}

// isGuarded reports whether an expression handles missing series.
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

// alwaysThere reports whether the aggregator keeps the series of a selector for
// every role or every node that is known; not for every role of a node.
func alwaysThere(selector *parser.VectorSelector) bool {
	if isLeader(selector) {
		return !selectedBy(selector, "role") || !selectedBy(selector, "node", "node_name")
	}
	return isNodeUp(selector) || strings.HasSuffix(selector.Name, "_node_reporting")
}

func isNodeUp(selector *parser.VectorSelector) bool {
	return strings.HasSuffix(selector.Name, "_node_up")
}

// upByID warns of a selection of tenure_node_up by the id of a node, which every restart
// changes.
func upByID(selector *parser.VectorSelector) string {
	if !isNodeUp(selector) || !selectedBy(selector, "node") {
		return ""
	}
	return fmt.Sprintf("%s has no label node, since a restart changes the id: select by node_name", selector.Name)
}

func isLeader(selector *parser.VectorSelector) bool {
	return strings.HasSuffix(selector.Name, "_leader_is_leader")
}
