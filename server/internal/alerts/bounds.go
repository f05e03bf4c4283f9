package alerts

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// The bounds on a condition, checked before it is evaluated. The engine's own bound
// counts samples. It counts neither the work for a subquery nor the growth of labels.
const (
	maxCondition = 16 << 10 // bytes
	maxNodes     = 1000     // parts of the expression
	maxPoints    = 11_000   // of a subquery, with those around it: as many as Prometheus draws
	maxRange     = 31 * 24 * time.Hour
	maxGrowth    = 100 // how many times as long label_replace and label_join may make a label
	// subqueryStep is the default step of a subquery.
	subqueryStep = time.Minute
)

// checkBounds refuses a too expensive expression.
func checkBounds(condition string, expression parser.Expr) error {
	b := bounds{condition: condition}
	b.look(expression, 1)
	if b.err == nil && b.nodes > maxNodes {
		b.refuse(expression, "the condition has %d parts; the limit is %d", b.nodes, maxNodes)
	}
	return b.err
}

// bounds adds up the cost of an expression.
type bounds struct {
	condition string
	nodes     int
	err       error // the first
}

func (b *bounds) refuse(at parser.Node, format string, args ...any) {
	if b.err == nil {
		b.err = conditionError(b.condition, int(at.PositionRange().Start), fmt.Sprintf(format, args...))
	}
}

// look adds an expression evaluated at a number of points. It returns the factor by which
// its labels can grow.
func (b *bounds) look(node parser.Node, points int64) (growth int) {
	b.nodes++
	if b.err != nil || b.nodes > maxNodes {
		return 1
	}
	switch n := node.(type) {
	case *parser.SubqueryExpr:
		step := n.Step
		if step <= 0 {
			step = subqueryStep
		}
		b.checkRange(n, n.Range)
		points *= int64(n.Range/step) + 1
		if points > maxPoints {
			b.refuse(n, "the subquery is evaluated at %d points, with those around it; the limit is %d: make its range shorter or its step longer", points, maxPoints)
			return 1
		}
	case *parser.MatrixSelector:
		b.checkRange(n, n.Range)
	}
	growth = 1
	for child := range parser.ChildrenIter(node) {
		growth = max(growth, b.look(child, points))
	}
	if call, ok := node.(*parser.Call); ok {
		if growth *= labelGrowth(call); growth > maxGrowth {
			b.refuse(call, "%s makes labels more than %d times as long", call.Func.Name, maxGrowth)
			return 1
		}
	}
	return growth
}

func (b *bounds) checkRange(at parser.Node, length time.Duration) {
	if length > maxRange {
		b.refuse(at, "the range is %v; the limit is %v", length, maxRange)
	}
}

// labelGrowth is how many labels a call can put into one.
func labelGrowth(call *parser.Call) int {
	switch call.Func.Name {
	case "label_replace": // (vector, to, replacement, from, pattern)
		if text, ok := call.Args[2].(*parser.StringLiteral); ok {
			return max(1, strings.Count(text.Val, "$"))
		}
	case "label_join": // (vector, to, separator, from...)
		return max(1, len(call.Args)-3)
	}
	return 1
}
