package alerts

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/exactly-one/tenure/metrics"
)

// Traps says where a condition that is right in itself probably does not mean
// what it seems to. The prefix is that of the metrics, if it is not the default.
func Traps(condition, prefix string) []string {
	expression, err := parse(condition)
	if err != nil {
		return nil
	}
	traps := unknownMetrics(expression, prefix)
	add := func(trap string) {
		if trap != "" && !slices.Contains(traps, trap) {
			traps = append(traps, trap)
		}
	}
	add(firesAlways(expression))
	guarded := isGuarded(expression)
	parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
		switch node := node.(type) {
		case *parser.BinaryExpr:
			if c, ok := comparedWith(node); ok {
				add(c.perSecond())
				add(c.ofEachProcess())
				add(c.neverResolves())
				add(c.canVanish(guarded))
				add(c.countsNothing(guarded))
			}
		case *parser.Call:
			add(neverAbsent(node))
			add(wrongType(node))
			add(rateOfSum(node))
		case *parser.VectorSelector:
			add(upByID(node))
		case *parser.MatrixSelector:
			add(outOfReach(node, path))
		case *parser.SubqueryExpr:
			add(beyondRetention(node.Range, node.OriginalOffset, node.String()))
		}
		return nil
	})
	return traps
}

// comparisonWith is a comparison with a number, which is on the right.
type comparisonWith struct {
	side   parser.Expr
	op     parser.ItemType
	number float64
}

func comparedWith(e *parser.BinaryExpr) (comparisonWith, bool) {
	if !e.Op.IsComparisonOperator() {
		return comparisonWith{}, false
	}
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

// high reports whether a comparison finds much of something.
func (c comparisonWith) high() bool { return c.op == parser.GTR || c.op == parser.GTE }

// low reports whether a comparison finds little of something, or none.
func (c comparisonWith) low() bool {
	return c.op == parser.LSS || c.op == parser.LTE || c.op == parser.EQLC && c.number == 0
}

// plainSelector returns the only series of an expression, selected directly or
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

// definitionOf is what a metric of this program is; ok is false for others.
func definitionOf(name string) (d metrics.Definition, ok bool) {
	_, rest, _ := strings.Cut(name, "_")
	i := slices.IndexFunc(ourMetrics, func(d metrics.Definition) bool { return d.Name == rest })
	if i < 0 {
		return d, false
	}
	return ourMetrics[i], true
}

func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_count", "_bucket"}, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// selectedBy reports whether a selector looks at any of some labels.
func selectedBy(selector *parser.VectorSelector, names ...string) bool {
	for _, m := range selector.LabelMatchers {
		if m.Name != model.MetricNameLabel && slices.Contains(names, m.Name) {
			return true
		}
	}
	return false
}

func written(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }
